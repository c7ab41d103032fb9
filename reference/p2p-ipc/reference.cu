// Each rank exports one allocation: flags, then a staging ring per block. A sender block copies
// chunks from the source into its ring and publishes how many it has written in a flag in the
// receiver's memory; the receiver block of the same number pulls them across the link and publishes
// how many it has read in a flag in the sender's memory. So the two copies overlap, and staging
// stays small.
//
// Both flags count chunks since cb_setup and never go back. Progress lives in device memory and is
// the same on both sides, because both cut every message the same way. Each waiting block waits for
// one block of the other rank only, and both grids are small enough to be resident at once.
// Interprocess events would not help: without a host-side order between the ranks, a wait may be
// issued before the record it is meant for.

#include <commbench/families/p2p.h>

#include <algorithm>
#include <vector>

namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 4;
constexpr size_t kMaxBlocks = 32;
constexpr size_t kSlots = 4;
constexpr size_t kSlotBytes = 64 << 10;
constexpr size_t kMinChunkBytes = 8 << 10;

struct alignas(128) Counter {
  uint64_t value;
};

/// The start of every rank's allocation. `written` is stored by the partner as sender, `read` by
/// the partner as receiver, `progress` by its own rank only.
struct Control {
  Counter written[kMaxBlocks];
  Counter read[kMaxBlocks];
  Counter progress[kMaxBlocks];
};

constexpr size_t kRingBytes = kSlots * kSlotBytes;
constexpr size_t kAllocationBytes = sizeof(Control) + kMaxBlocks * kRingBytes;

struct State {
  cb_context* context;
  cb_p2p_role role;
  char* own;
  char* partner;
};

struct Chunks {
  size_t bytes;
  size_t chunk_bytes;
  size_t count;
};

Chunks cut(size_t bytes) {
  size_t share = (bytes / kMaxBlocks + kMinChunkBytes - 1) / kMinChunkBytes * kMinChunkBytes;
  size_t chunk = std::min(std::max(share, kMinChunkBytes), kSlotBytes);
  return {bytes, chunk, (bytes + chunk - 1) / chunk};
}

/// Bytes [16 * kWord + bits / 8, ...) of two neighbouring vectors, as one vector.
template <int kWord>
__device__ uint4 realign(uint4 low, uint4 high, unsigned bits) {
  const uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  return make_uint4(__funnelshift_r(w[kWord], w[kWord + 1], bits),
                    __funnelshift_r(w[kWord + 1], w[kWord + 2], bits),
                    __funnelshift_r(w[kWord + 2], w[kWord + 3], bits),
                    __funnelshift_r(w[kWord + 3], w[kWord + 4], bits));
}

/// Stores aligned vectors whose bytes straddle two aligned vectors of `in`.
template <int kWord>
__device__ void copy_shifted(uint4* out, const uint4* in, size_t vectors, unsigned bits,
                             size_t thread, size_t threads) {
  for (size_t v = thread; v < vectors; v += threads) {
    out[v] = realign<kWord>(in[v], in[v + 1], bits);
  }
}

__device__ void copy_aligned(uint4* out, const uint4* in, size_t vectors, size_t thread,
                             size_t threads) {
  size_t v = thread;
  for (; v + (kUnroll - 1) * threads < vectors; v += kUnroll * threads) {
    uint4 data[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) data[u] = in[v + u * threads];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) out[v + u * threads] = data[u];
  }
  for (; v < vectors; v += threads) out[v] = in[v];
}

/// Copies `bytes` bytes with `threads` threads, of which this one is number `thread`. Stores are
/// aligned vectors except at the ends; where the source is misaligned against the target, each is
/// put together from two aligned loads that both lie inside the source.
__device__ void copy_bytes(char* to, const char* from, size_t bytes, size_t thread,
                           size_t threads) {
  size_t head = (16 - reinterpret_cast<uintptr_t>(to)) & 15;
  unsigned shift = (reinterpret_cast<uintptr_t>(from) + head) & 15;
  if (head < shift) head += 16;
  if (head > bytes) head = bytes;
  size_t body = bytes - head + shift;
  size_t vectors = shift == 0 ? body / 16 : body < 32 ? 0 : body / 16 - 1;
  size_t tail = head + 16 * vectors;
  for (size_t i = thread; i < head; i += threads) to[i] = from[i];
  for (size_t i = tail + thread; i < bytes; i += threads) to[i] = from[i];
  if (vectors == 0) return;
  uint4* out = reinterpret_cast<uint4*>(to + head);
  const uint4* in = reinterpret_cast<const uint4*>(from + head - shift);
  unsigned bits = shift % 4 * 8;
  if (shift == 0) return copy_aligned(out, in, vectors, thread, threads);
  switch (shift / 4) {
    case 0:
      return copy_shifted<0>(out, in, vectors, bits, thread, threads);
    case 1:
      return copy_shifted<1>(out, in, vectors, bits, thread, threads);
    case 2:
      return copy_shifted<2>(out, in, vectors, bits, thread, threads);
    default:
      return copy_shifted<3>(out, in, vectors, bits, thread, threads);
  }
}

__device__ void store_release(Counter* counter, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(&counter->value), "l"(value) : "memory");
}

__device__ void wait_for(const Counter* counter, uint64_t at_least) {
  uint64_t value;
  do {
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                 : "=l"(value)
                 : "l"(&counter->value)
                 : "memory");
  } while (value < at_least);
}

__device__ char* slot_of(char* allocation, uint64_t index) {
  return allocation + sizeof(Control) + blockIdx.x * kRingBytes + index % kSlots * kSlotBytes;
}

__global__ void __launch_bounds__(kThreads)
    send(char* own, char* partner, const char* source, Chunks chunks) {
  Control* mine = reinterpret_cast<Control*>(own);
  Control* theirs = reinterpret_cast<Control*>(partner);
  uint64_t index = mine->progress[blockIdx.x].value;
  for (size_t c = blockIdx.x; c < chunks.count; c += gridDim.x, ++index) {
    // The slot is free once the chunk that was in it has been read: an acquire, so that the stores
    // below cannot overtake the partner's loads.
    if (threadIdx.x == 0 && index >= kSlots) wait_for(&mine->read[blockIdx.x], index - kSlots + 1);
    __syncthreads();
    size_t at = c * chunks.chunk_bytes;
    copy_bytes(slot_of(own, index), source + at, min(chunks.chunk_bytes, chunks.bytes - at),
               threadIdx.x, kThreads);
    // The barrier puts the stores of the block before thread 0's cumulative release.
    __syncthreads();
    if (threadIdx.x == 0) store_release(&theirs->written[blockIdx.x], index + 1);
  }
  if (threadIdx.x == 0) mine->progress[blockIdx.x].value = index;
}

__global__ void __launch_bounds__(kThreads)
    receive(char* own, char* partner, char* target, Chunks chunks) {
  Control* mine = reinterpret_cast<Control*>(own);
  Control* theirs = reinterpret_cast<Control*>(partner);
  uint64_t index = mine->progress[blockIdx.x].value;
  for (size_t c = blockIdx.x; c < chunks.count; c += gridDim.x, ++index) {
    if (threadIdx.x == 0) wait_for(&mine->written[blockIdx.x], index + 1);
    // Extends the acquire of thread 0 to the loads of the whole block.
    __syncthreads();
    size_t at = c * chunks.chunk_bytes;
    copy_bytes(target + at, slot_of(partner, index), min(chunks.chunk_bytes, chunks.bytes - at),
               threadIdx.x, kThreads);
    // The loads of the block are before the barrier, and the release keeps them before the flag
    // that lets the sender overwrite the slot.
    __syncthreads();
    if (threadIdx.x == 0) store_release(&theirs->read[blockIdx.x], index + 1);
  }
  if (threadIdx.x == 0) mine->progress[blockIdx.x].value = index;
}

bool ok(cudaError_t error) { return error == cudaSuccess; }

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  State* self = new State{context, args->role, nullptr, nullptr};
  *state = self;
  // The flags are zero before any partner can have the handle.
  if (!ok(cudaMalloc(&self->own, kAllocationBytes)) ||
      !ok(cudaMemset(self->own, 0, sizeof(Control))) || !ok(cudaDeviceSynchronize())) {
    return CB_ERR_CUDA;
  }
  cudaIpcMemHandle_t handle = {};
  if (!ok(cudaIpcGetMemHandle(&handle, self->own))) return CB_ERR_CUDA;
  std::vector<cudaIpcMemHandle_t> handles(static_cast<size_t>(cb_world_size(context)));
  cb_status status = cb_allgather(context, &handle, handles.data(), sizeof(handle));
  if (status != CB_OK || args->role == CB_P2P_IDLE) return status;
  void* opened = nullptr;
  if (!ok(cudaIpcOpenMemHandle(&opened, handles[static_cast<size_t>(args->partner)],
                               cudaIpcMemLazyEnablePeerAccess))) {
    return CB_ERR_CUDA;
  }
  self->partner = static_cast<char*>(opened);
  return CB_OK;
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  const State& self = *static_cast<State*>(state);
  if (step->bytes == 0 || self.role == CB_P2P_IDLE) return CB_OK;
  Chunks chunks = cut(step->bytes);
  int grid = static_cast<int>(std::min(chunks.count, kMaxBlocks));
  if (self.role == CB_P2P_SENDER) {
    send<<<grid, kThreads, 0, stream>>>(self.own, self.partner,
                                        static_cast<const char*>(step->source.local), chunks);
  } else {
    receive<<<grid, kThreads, 0, stream>>>(self.own, self.partner,
                                           static_cast<char*>(step->target.local), chunks);
  }
  return ok(cudaGetLastError()) ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) {
  State* self = static_cast<State*>(state);
  if (self->partner != nullptr) cudaIpcCloseMemHandle(self->partner);
  // An allocation is freed only after its partner has closed it.
  cb_barrier(self->context);
  cudaFree(self->own);
  delete self;
}
