// The benchmark's work as plain loops on one core, compiled as the simulator's handlers are: what
// the machine could do if nothing had to be simulated.

#include "simulator/bench/plain_loops.h"

namespace cb::sim {

void plain_copy(const float* source, float* target, size_t count) {
  for (size_t i = 0; i < count; ++i) target[i] = source[i];
}

void plain_all_reduce(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                      size_t count) {
  for (float* output : outputs) {
    for (size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (const float* input : inputs) sum += input[i];
      output[i] = sum;
    }
  }
}

void plain_matmul_tiled(const float* a, const float* b, float* c, size_t size) {
  constexpr size_t kTile = 32;
  for (size_t row0 = 0; row0 < size; row0 += kTile) {
    for (size_t column0 = 0; column0 < size; column0 += kTile) {
      float sums[kTile][kTile] = {};
      for (size_t k = 0; k < size; ++k) {
        for (size_t row = 0; row < kTile; ++row) {
          float factor = a[(row0 + row) * size + k];
          for (size_t column = 0; column < kTile; ++column) {
            sums[row][column] += factor * b[k * size + column0 + column];
          }
        }
      }
      for (size_t row = 0; row < kTile; ++row) {
        for (size_t column = 0; column < kTile; ++column) {
          c[(row0 + row) * size + column0 + column] = sums[row][column];
        }
      }
    }
  }
}

void plain_matmul_naive(const float* a, const float* b, float* c, size_t size) {
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      float sum = 0;
      for (size_t k = 0; k < size; ++k) sum += a[row * size + k] * b[k * size + column];
      c[row * size + column] = sum;
    }
  }
}

}  // namespace cb::sim
