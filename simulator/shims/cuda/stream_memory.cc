// Stream memory operations. Those of the first version (without _v2) need a module parameter of the
// driver, without which hardware refuses them, too.

#include "simulator/shims/client/stream_memory.h"

#include "simulator/shims/cuda/driver.h"

using namespace cb::sim;
using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

/// The devices do not flush remote writes: CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0.
cudaError_t wait_kind(unsigned flags, uint32_t* kind) {
  if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return cudaErrorNotSupported;
  switch (flags) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      *kind = StreamMemoryOp::kWaitGreaterOrEqual;
      return cudaSuccess;
    case CU_STREAM_WAIT_VALUE_EQ:
      *kind = StreamMemoryOp::kWaitEqual;
      return cudaSuccess;
    case CU_STREAM_WAIT_VALUE_AND:
      *kind = StreamMemoryOp::kWaitAnd;
      return cudaSuccess;
    case CU_STREAM_WAIT_VALUE_NOR:
      *kind = StreamMemoryOp::kWaitNor;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

/// No flag of writes is supported since the second version.
cudaError_t check_write(unsigned flags) {
  return flags == CU_STREAM_WRITE_VALUE_DEFAULT ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t convert(const CUstreamBatchMemOpParams& from, StreamMemoryOp* to) {
  switch (from.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      to->is_64_bit = from.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ? 1 : 0;
      to->address = from.waitValue.address;
      to->value = to->is_64_bit != 0 ? from.waitValue.value64 : from.waitValue.value;
      return wait_kind(from.waitValue.flags, &to->kind);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      to->kind = StreamMemoryOp::kWrite;
      to->is_64_bit = from.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 1 : 0;
      to->address = from.writeValue.address;
      to->value = to->is_64_bit != 0 ? from.writeValue.value64 : from.writeValue.value;
      return check_write(from.writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
      to->kind = StreamMemoryOp::kBarrier;
      return from.memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? cudaSuccess
                                                                           : cudaErrorInvalidValue;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return cudaErrorNotSupported;
  }
  return cudaErrorInvalidValue;
}

CUresult batch(CUstream stream, unsigned count, const CUstreamBatchMemOpParams* params,
               unsigned flags, DefaultStream null_means) {
  return context_call([&] {
    if (params == nullptr || count == 0 || count > kMaxStreamMemoryOps || flags != 0) {
      return cudaErrorInvalidValue;
    }
    StreamMemoryOp operations[kMaxStreamMemoryOps];
    for (unsigned at = 0; at < count; ++at) {
      cudaError_t error = convert(params[at], &operations[at]);
      if (error != cudaSuccess) return error;
    }
    return do_stream_memory(stream, operations, count, null_means);
  });
}

template <class Value>
CUresult wait(CUstream stream, CUdeviceptr address, Value value, unsigned flags,
              DefaultStream null_means) {
  return context_call([&] {
    StreamMemoryOp op;
    op.is_64_bit = sizeof(Value) == 8 ? 1 : 0;
    op.address = address;
    op.value = value;
    cudaError_t error = wait_kind(flags, &op.kind);
    return error == cudaSuccess ? do_stream_memory(stream, &op, 1, null_means) : error;
  });
}

template <class Value>
CUresult write(CUstream stream, CUdeviceptr address, Value value, unsigned flags,
               DefaultStream null_means) {
  return context_call([&] {
    StreamMemoryOp op;
    op.is_64_bit = sizeof(Value) == 8 ? 1 : 0;
    op.address = address;
    op.value = value;
    cudaError_t error = check_write(flags);
    return error == cudaSuccess ? do_stream_memory(stream, &op, 1, null_means) : error;
  });
}

}  // namespace

CB_DRIVER CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                          unsigned flags) {
  return wait(stream, address, value, flags, kLegacy);
}
CB_DRIVER CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address,
                                               cuuint32_t value, unsigned flags) {
  return wait(stream, address, value, flags, kPerThread);
}

CB_DRIVER CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                          unsigned flags) {
  return wait(stream, address, value, flags, kLegacy);
}
CB_DRIVER CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address,
                                               cuuint64_t value, unsigned flags) {
  return wait(stream, address, value, flags, kPerThread);
}

CB_DRIVER CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                           unsigned flags) {
  return write(stream, address, value, flags, kLegacy);
}
CB_DRIVER CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr address,
                                                cuuint32_t value, unsigned flags) {
  return write(stream, address, value, flags, kPerThread);
}

CB_DRIVER CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                           unsigned flags) {
  return write(stream, address, value, flags, kLegacy);
}
CB_DRIVER CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr address,
                                                cuuint64_t value, unsigned flags) {
  return write(stream, address, value, flags, kPerThread);
}

CB_DRIVER CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count,
                                         CUstreamBatchMemOpParams* params, unsigned flags) {
  return batch(stream, count, params, flags, kLegacy);
}
CB_DRIVER CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned count,
                                              CUstreamBatchMemOpParams* params, unsigned flags) {
  return batch(stream, count, params, flags, kPerThread);
}
