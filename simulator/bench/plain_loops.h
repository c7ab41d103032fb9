#pragma once

#include <cstddef>
#include <vector>

namespace cb::sim {

void plain_copy(const float* source, float* target, size_t count);
/// Every output is the sum of all inputs.
void plain_all_reduce(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                      size_t count);
void plain_matmul_tiled(const float* a, const float* b, float* c, size_t size);
void plain_matmul_naive(const float* a, const float* b, float* c, size_t size);

}  // namespace cb::sim
