// Every rank loads each vector of its block once and stores it into all outputs, starting with a
// different peer on each rank so that no GPU is everybody's first target. Stores go to aligned
// addresses of the outputs; where the input is misaligned against them, each vector is put together
// from two aligned loads.
//
// One barrier before (peers have started: their outputs may be written) and one after (all blocks
// have arrived here). Both are among blocks of one number: block b of a rank waits for the blocks b
// that store to it, and together the blocks cover everything. The grid is the same on all ranks and
// small enough to be resident at once. Inputs are read by their owner only.

#include <commbench/families/collective.h>

#include <algorithm>

namespace {

constexpr int kThreads = 512;
constexpr int kMaxBlocks = 64;
constexpr int kMaxRanks = 8;
constexpr int kFlagStride = 32;  // 128 bytes per block

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

/// Waits until the blocks of this number have got here on all ranks. Stores that they made before
/// are visible afterwards: they precede the release of their flag through their block barrier, and
/// the acquire is extended to this block by its second barrier.
__device__ void barrier_of_same_blocks(const Peers& flags, int ranks, int rank, uint32_t epoch) {
  __syncthreads();
  if (threadIdx.x < ranks) {
    uint32_t* theirs = reinterpret_cast<uint32_t*>(flags.at[threadIdx.x]);
    uint32_t* mine = reinterpret_cast<uint32_t*>(flags.at[rank]);
    size_t block = size_t{blockIdx.x} * kFlagStride;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs + block + rank), "r"(epoch)
                 : "memory");
    uint32_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(mine + block + threadIdx.x)
                   : "memory");
      // A peer may be ahead; the difference stays right when the counter wraps.
    } while (static_cast<int32_t>(seen - epoch) < 0);
  }
  __syncthreads();
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

/// The vector of input bytes from `shift` bytes behind the aligned vector in[v].
__device__ uint4 load_vector(const uint4* in, size_t v, unsigned shift) {
  if (shift == 0) return in[v];
  uint4 low = in[v], high = in[v + 1];
  unsigned bits = shift % 4 * 8;
  switch (shift / 4) {
    case 0:
      return realign<0>(low, high, bits);
    case 1:
      return realign<1>(low, high, bits);
    case 2:
      return realign<2>(low, high, bits);
    default:
      return realign<3>(low, high, bits);
  }
}

/// Stores `bytes` bytes to `kTargets` places of equal alignment.
template <int kTargets>
__device__ void copy_to_all(const Peers& to, const char* from, size_t bytes) {
  size_t thread = size_t{blockIdx.x} * kThreads + threadIdx.x;
  size_t threads = size_t{gridDim.x} * kThreads;
  size_t head = (16 - reinterpret_cast<uintptr_t>(to.at[0])) & 15;
  unsigned shift = (reinterpret_cast<uintptr_t>(from) + head) & 15;
  if (head < shift) head += 16;
  if (head > bytes) head = bytes;
  size_t body = bytes - head + shift;
  size_t vectors = shift == 0 ? body / 16 : body < 32 ? 0 : body / 16 - 1;
  size_t edges = bytes - 16 * vectors;
  for (size_t e = thread; e < edges; e += threads) {
    size_t i = e < head ? e : e + 16 * vectors;
    char byte = from[i];
#pragma unroll
    for (int t = 0; t < kTargets; ++t) to.at[t][i] = byte;
  }
  const uint4* in = reinterpret_cast<const uint4*>(from + head - shift);
  for (size_t v = thread; v < vectors; v += threads) {
    uint4 data = load_vector(in, v, shift);
#pragma unroll
    for (int t = 0; t < kTargets; ++t) reinterpret_cast<uint4*>(to.at[t] + head)[v] = data;
  }
}

template <int kTargets>
__global__ void __launch_bounds__(kThreads)
    gather(const __grid_constant__ Peers to, const char* from, size_t bytes,
           const __grid_constant__ Peers flags, int ranks, int rank, uint32_t epoch) {
  barrier_of_same_blocks(flags, ranks, rank, epoch);
  copy_to_all<kTargets>(to, from, bytes);
  barrier_of_same_blocks(flags, ranks, rank, epoch + 1);
}

constexpr size_t kElementBytes[] = {1, 4, 8, 2, 2, 4, 8};  // by cb_dtype

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  int world_size = cb_world_size(context);
  if (world_size > kMaxRanks) return CB_ERR_UNSUPPORTED;
  State* self = new State{cb_rank(context), world_size, kElementBytes[args->dtype], {}, 0};
  *state = self;
  return cb_sym_alloc(context, kMaxBlocks * kFlagStride * sizeof(uint32_t), &self->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State& self = *static_cast<State*>(state);
  if (step->count == 0) return CB_OK;  // on every rank alike
  size_t bytes = step->count * self.element_bytes;
  Peers to = {}, flags = {};
  int targets = 0;
  for (int i = 1; i <= self.world_size; ++i) {
    int r = (self.rank + i) % self.world_size;
    flags.at[r] = static_cast<char*>(self.flags.peer[r]);
    // In place, the own block is where it belongs.
    if (r == self.rank && step->in_place) continue;
    to.at[targets++] = static_cast<char*>(step->output.peer[r]) + self.rank * bytes;
  }
  for (int t = 1; t < targets; ++t) {
    if (reinterpret_cast<uintptr_t>(to.at[t]) % 16 != reinterpret_cast<uintptr_t>(to.at[0]) % 16) {
      return CB_ERR_UNSUPPORTED;
    }
  }
  size_t per_block = 16 * kThreads;
  int grid = static_cast<int>(std::min<size_t>((bytes + per_block - 1) / per_block, kMaxBlocks));
  const char* from = static_cast<const char*>(step->input.local);
  auto launch = [&](auto kernel) {
    kernel<<<grid, kThreads, 0, stream>>>(to, from, bytes, flags, self.world_size, self.rank,
                                          self.epoch + 1);
  };
  switch (targets) {
    case 1:
      launch(gather<1>);
      break;
    case 2:
      launch(gather<2>);
      break;
    case 3:
      launch(gather<3>);
      break;
    case 4:
      launch(gather<4>);
      break;
    case 5:
      launch(gather<5>);
      break;
    case 6:
      launch(gather<6>);
      break;
    case 7:
      launch(gather<7>);
      break;
    case 8:
      launch(gather<8>);
      break;
  }
  self.epoch += 2;
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
