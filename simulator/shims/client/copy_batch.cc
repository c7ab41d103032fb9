#include "simulator/shims/client/copy_batch.h"

#include "simulator/shims/client/copies.h"

namespace cb::sim::client {
namespace {

cudaError_t check_batch(const CopyBatch& batch) {
  bool valid = batch.dsts != nullptr && batch.srcs != nullptr && batch.sizes != nullptr &&
               batch.count > 0 && batch.attributes != nullptr && batch.first_of != nullptr &&
               batch.num_attributes > 0 && batch.num_attributes <= batch.count &&
               batch.first_of[0] == 0;
  if (!valid) return cudaErrorInvalidValue;
  for (size_t at = 0; at < batch.num_attributes; ++at) {
    auto order = batch.attributes[at].srcAccessOrder;
    bool known = order >= cudaMemcpySrcAccessOrderStream && order <= cudaMemcpySrcAccessOrderAny;
    bool rising = at == 0 || batch.first_of[at] > batch.first_of[at - 1];
    if (!known || !rising || batch.first_of[at] >= batch.count) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t copy_batch(const CopyBatch& batch, cudaStream_t stream, DefaultStream null_means) {
  cudaError_t error = check_batch(batch);
  if (error != cudaSuccess) return error;
  CopyMode mode;
  mode.async = true;
  if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
  // Not for the default stream, as CUDA documents it.
  if (mode.stream.id == kNullStream) return cudaErrorInvalidValue;
  for (size_t at = 0; at < batch.count; ++at) {
    CopyShape shape;
    shape.width_bytes = batch.sizes[at];
    error = copy(batch.dsts[at], batch.srcs[at], shape, cudaMemcpyDefault, mode);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace cb::sim::client
