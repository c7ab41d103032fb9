// Pushes with 16-byte stores to aligned addresses of the peer, whatever the alignment of the
// source. One block per 8 KiB up to one per SM: some 16 SMs fill the link, and more only help small
// messages to get their loads out at once. No flag is needed: the sender is done when its kernel
// is, and kernel completion makes its stores visible to everyone.

#include <commbench/families/p2p.h>

#include <algorithm>

namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 4;

struct State {
  cb_p2p_role role;
  int partner;
  int num_sms;
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

__global__ void __launch_bounds__(kThreads) push(char* to, const char* from, size_t bytes) {
  size_t thread = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  copy_bytes(to, from, bytes, thread, size_t{gridDim.x} * blockDim.x);
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  int num_sms = 0;
  if (cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, cb_device(context)) !=
      cudaSuccess) {
    return CB_ERR_CUDA;
  }
  *state = new State{args->role, args->partner, num_sms};
  return CB_OK;
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  const State& self = *static_cast<State*>(state);
  if (self.role != CB_P2P_SENDER || step->bytes == 0) return CB_OK;
  size_t bytes_per_block = 16 * kThreads;
  size_t blocks = (step->bytes + bytes_per_block - 1) / bytes_per_block;
  int grid = static_cast<int>(std::min<size_t>(blocks, self.num_sms));
  push<<<grid, kThreads, 0, stream>>>(static_cast<char*>(step->target.peer[self.partner]),
                                      static_cast<const char*>(step->source.local), step->bytes);
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
