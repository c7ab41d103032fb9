// The message is cut into chunks that are dealt to blocks. Each sender block has a flag of its own
// in the receiver's memory, on which the receiver block of the same number waits: no block waits
// for another of its own grid, and the receiver copies the first chunks while later ones are on
// their way.
//
// A flag counts: (sequence << 16) + chunks of this call that have arrived. It only grows, so
// nothing is reset between calls, and a receiver that is behind finds flags that are ahead of it,
// which still mean what it waits for: no two calls of a step share a target, and steps are
// separated by the grader. Sender blocks never wait, and the receiver's grid is small enough to be
// resident at once, so the order in which the ranks arrive does not matter.

#include <commbench/families/p2p.h>

#include <algorithm>

namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 4;
constexpr size_t kMaxBlocks = 64;
constexpr size_t kMinChunkBytes = 8 << 10;
constexpr size_t kMaxChunkBytes = 64 << 10;
constexpr int kFlagStride = 16;  // 128 bytes apart

struct State {
  cb_p2p_role role;
  int partner;
  cb_span flags;
};

struct Chunks {
  size_t bytes;
  size_t chunk_bytes;
  size_t count;
};

Chunks cut(size_t bytes) {
  size_t share = (bytes / kMaxBlocks + kMinChunkBytes - 1) / kMinChunkBytes * kMinChunkBytes;
  size_t chunk = std::min(std::max(share, kMinChunkBytes), kMaxChunkBytes);
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

__device__ void store_release(uint64_t* flag, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

__device__ uint64_t load_acquire(const uint64_t* flag) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
  return value;
}

__global__ void __launch_bounds__(kThreads)
    put(char* target, const char* source, Chunks chunks, uint64_t* flags, uint64_t epoch) {
  for (size_t c = blockIdx.x; c < chunks.count; c += gridDim.x) {
    size_t at = c * chunks.chunk_bytes;
    copy_bytes(target + at, source + at, min(chunks.chunk_bytes, chunks.bytes - at), threadIdx.x,
               kThreads);
    // The barrier orders all stores of the block before thread 0's release, which is cumulative:
    // whoever acquires the flag at system scope sees them.
    __syncthreads();
    if (threadIdx.x == 0) store_release(flags + blockIdx.x * kFlagStride, ++epoch);
  }
}

__global__ void __launch_bounds__(kThreads) consume(char* output, const char* target, Chunks chunks,
                                                    const uint64_t* flags, uint64_t epoch) {
  for (size_t c = blockIdx.x; c < chunks.count; c += gridDim.x) {
    ++epoch;
    if (threadIdx.x == 0) {
      while (load_acquire(flags + blockIdx.x * kFlagStride) < epoch) {
      }
    }
    // Extends the acquire of thread 0 to the loads of the whole block.
    __syncthreads();
    size_t at = c * chunks.chunk_bytes;
    copy_bytes(output + at, target + at, min(chunks.chunk_bytes, chunks.bytes - at), threadIdx.x,
               kThreads);
  }
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  State* self = new State{args->role, args->partner, {}};
  *state = self;
  return cb_sym_alloc(context, kMaxBlocks * kFlagStride * sizeof(uint64_t), &self->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  const State& self = *static_cast<State*>(state);
  if (step->bytes == 0 || self.role == CB_P2P_IDLE) return CB_OK;
  Chunks chunks = cut(step->bytes);
  int grid = static_cast<int>(std::min(chunks.count, kMaxBlocks));
  uint64_t epoch = step->sequence << 16;
  if (self.role == CB_P2P_SENDER) {
    put<<<grid, kThreads, 0, stream>>>(static_cast<char*>(step->target.peer[self.partner]),
                                       static_cast<const char*>(step->source.local), chunks,
                                       static_cast<uint64_t*>(self.flags.peer[self.partner]),
                                       epoch);
  } else {
    consume<<<grid, kThreads, 0, stream>>>(static_cast<char*>(step->output.local),
                                           static_cast<const char*>(step->target.local), chunks,
                                           static_cast<const uint64_t*>(self.flags.local), epoch);
  }
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
