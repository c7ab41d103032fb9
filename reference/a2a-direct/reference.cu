// Every block of the grid serves one peer and a slice of the data for it. Peers are dealt to blocks
// starting with the next rank, so that at any time all GPUs send to different ones.
//
// Blocks that serve each other, (peer p, slice j) on rank s and (peer s, slice j) on rank p, share
// two flags, one in each direction, that count: first "my rank has started, write into its output",
// then "my slice has arrived". So each pair goes ahead as soon as both are there, whatever the
// others do. The output of a rank is complete when all its blocks have got their second flag. The
// grid is the same on all ranks and small enough to be resident at once. Inputs are read by their
// owner only.

#include <commbench/families/collective.h>

#include <algorithm>

namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 4;
constexpr int kMaxBlocks = 64;
constexpr int kMaxRanks = 8;
constexpr int kFlagStride = 32;  // 128 bytes apart
constexpr size_t kFlagBytes = size_t{kMaxRanks} * kMaxBlocks * kFlagStride * sizeof(uint32_t);

struct Peers {
  char* at[kMaxRanks];
};

struct State {
  int rank;
  int world_size;
  size_t element_bytes;
  cb_span flags;
  uint32_t epoch;
};

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

/// The flag that rank `from` raises for slice `slice` in somebody's memory.
__device__ uint32_t* flag_of(char* flags, int from, int slice) {
  return reinterpret_cast<uint32_t*>(flags) + (from * kMaxBlocks + slice) * kFlagStride;
}

__device__ void raise(uint32_t* flag, uint32_t epoch) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(epoch) : "memory");
}

__device__ void wait_for(const uint32_t* flag, uint32_t epoch) {
  uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    // The peer may be ahead; the difference stays right when the counter wraps.
  } while (static_cast<int32_t>(seen - epoch) < 0);
}

__global__ void __launch_bounds__(kThreads)
    exchange(const __grid_constant__ Peers outputs, const char* input, size_t block_bytes,
             size_t slice_bytes, const __grid_constant__ Peers flags, int ranks, int rank,
             uint32_t epoch) {
  int peer = (rank + 1 + static_cast<int>(blockIdx.x) % ranks) % ranks;
  int slice = static_cast<int>(blockIdx.x) / ranks;
  uint32_t* theirs = flag_of(flags.at[peer], rank, slice);
  uint32_t* mine = flag_of(flags.at[rank], peer, slice);
  if (peer != rank && threadIdx.x == 0) {
    raise(theirs, epoch);
    wait_for(mine, epoch);
  }
  // Extends the acquire to the block: its stores below come after the peer's start.
  __syncthreads();
  size_t first = slice * slice_bytes;
  if (first < block_bytes) {
    copy_bytes(outputs.at[peer] + rank * block_bytes + first, input + peer * block_bytes + first,
               min(slice_bytes, block_bytes - first), threadIdx.x, kThreads);
  }
  // Orders the stores of the block before thread 0's cumulative release.
  __syncthreads();
  if (peer != rank && threadIdx.x == 0) {
    raise(theirs, epoch + 1);
    wait_for(mine, epoch + 1);
  }
}

constexpr size_t kElementBytes[] = {1, 4, 8, 2, 2, 4, 8};  // by cb_dtype

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  int world_size = cb_world_size(context);
  if (world_size > kMaxRanks) return CB_ERR_UNSUPPORTED;
  State* self = new State{cb_rank(context), world_size, kElementBytes[args->dtype], {}, 0};
  *state = self;
  return cb_sym_alloc(context, kFlagBytes, &self->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State& self = *static_cast<State*>(state);
  if (step->count == 0) return CB_OK;  // on every rank alike
  Peers outputs = {}, flags = {};
  for (int r = 0; r < self.world_size; ++r) {
    outputs.at[r] = static_cast<char*>(step->output.peer[r]);
    flags.at[r] = static_cast<char*>(self.flags.peer[r]);
  }
  size_t block_bytes = step->count * self.element_bytes;
  size_t per_block = 16 * kThreads;
  size_t max_slices = kMaxBlocks / self.world_size;
  size_t slices = std::min((block_bytes + per_block - 1) / per_block, max_slices);
  // Slices start at multiples of 128 bytes, where the block does too.
  size_t slice_bytes = ((block_bytes + slices - 1) / slices + 127) / 128 * 128;
  int grid = static_cast<int>(slices) * self.world_size;
  exchange<<<grid, kThreads, 0, stream>>>(outputs, static_cast<const char*>(step->input.local),
                                          block_bytes, slice_bytes, flags, self.world_size,
                                          self.rank, self.epoch + 1);
  self.epoch += 2;
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
