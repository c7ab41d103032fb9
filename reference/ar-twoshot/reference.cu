// Each rank owns a share of the elements. It loads them from all inputs, adds them up in fp32 and
// stores the result into all outputs: every byte crosses each link once as an addend and once as a
// result, and every element is computed in one place, so replicas are identical.
//
// In place this is safe as it is: an element of any input is read by its owner only, in the thread
// that afterwards overwrites it.
//
// One barrier before (peers have started: their inputs are there, their outputs may be written) and
// one after (all results have arrived here, and nobody reads this input any more). Both are among
// blocks of one number: block b of a rank waits for the blocks b that store to it, and together the
// blocks cover everything. The grid is the same on all ranks and small enough to be resident at
// once.

#include <commbench/families/collective.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

namespace {

constexpr int kThreads = 512;
constexpr int kMaxBlocks = 64;
constexpr int kMaxRanks = 8;
constexpr int kFlagStride = 32;  // 128 bytes per block
constexpr size_t kVectorBytes = 16;

struct Peers {
  char* at[kMaxRanks];
};

struct State {
  int rank;
  int world_size;
  cb_dtype dtype;
  cb_span flags;
  uint32_t epoch;
};

__device__ float to_float(float x) { return x; }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void from_float(float x, float& y) { y = x; }
__device__ void from_float(float x, __half& y) { y = __float2half_rn(x); }
__device__ void from_float(float x, __nv_bfloat16& y) { y = __float2bfloat16_rn(x); }

template <typename T>
struct alignas(kVectorBytes) Vector {
  static constexpr int kSize = kVectorBytes / sizeof(T);
  T element[kSize];
};

/// How the elements are cut: [0, head) and the rest after the vectors one by one, vectors between.
struct Cut {
  size_t count;
  size_t head;
  size_t vectors;
  bool vector_loads;  // the inputs are aligned where the outputs are
};

/// Waits until the blocks of this number have got here on all ranks. Stores that they made before
/// are visible afterwards, and loads that they made before are finished: both precede the release
/// of their flag through their block barrier, and the acquire is extended to this block by its
/// second barrier.
template <int kRanks>
__device__ void barrier_of_same_blocks(const Peers& flags, int rank, uint32_t epoch) {
  __syncthreads();
  if (threadIdx.x < kRanks) {
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

template <typename T>
__device__ Vector<T> load_vector(const char* input, size_t first, bool whole) {
  const T* from = reinterpret_cast<const T*>(input) + first;
  if (whole) return *reinterpret_cast<const Vector<T>*>(from);
  Vector<T> vector;
#pragma unroll
  for (int i = 0; i < Vector<T>::kSize; ++i) vector.element[i] = from[i];
  return vector;
}

template <typename T, int kRanks>
__device__ Vector<T> add(const Vector<T> (&part)[kRanks]) {
  Vector<T> result;
#pragma unroll
  for (int i = 0; i < Vector<T>::kSize; ++i) {
    float sum = to_float(part[0].element[i]);
#pragma unroll
    for (int r = 1; r < kRanks; ++r) sum += to_float(part[r].element[i]);
    from_float(sum, result.element[i]);
  }
  return result;
}

template <typename T, int kRanks>
__device__ void reduce_vectors(const Peers& outputs, const Peers& inputs, const Cut& cut,
                               int rank) {
  // With few ranks, several vectors at a time keep as many loads in flight as one does with many.
  constexpr int kUnroll = kRanks <= 2 ? 4 : kRanks <= 4 ? 2 : 1;
  constexpr int kSize = Vector<T>::kSize;
  size_t end = cut.vectors * (rank + 1) / kRanks;
  size_t stride = size_t{gridDim.x} * kThreads;
  size_t v = cut.vectors * rank / kRanks + size_t{blockIdx.x} * kThreads + threadIdx.x;
  for (; v < end; v += kUnroll * stride) {
    Vector<T> part[kUnroll][kRanks];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (v + u * stride >= end) break;
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        part[u][r] =
            load_vector<T>(inputs.at[r], cut.head + (v + u * stride) * kSize, cut.vector_loads);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (v + u * stride >= end) break;
      Vector<T> sum = add<T, kRanks>(part[u]);
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        T* to = reinterpret_cast<T*>(outputs.at[r]) + cut.head + (v + u * stride) * kSize;
        *reinterpret_cast<Vector<T>*>(to) = sum;
      }
    }
  }
}

template <typename T, int kRanks>
__device__ void reduce_edges(const Peers& outputs, const Peers& inputs, const Cut& cut, int rank) {
  size_t body = cut.vectors * Vector<T>::kSize;
  size_t edges = cut.count - body;
  size_t stride = size_t{gridDim.x} * kThreads * kRanks;
  size_t first = (size_t{blockIdx.x} * kThreads + threadIdx.x) * kRanks + rank;
  for (size_t e = first; e < edges; e += stride) {
    size_t i = e < cut.head ? e : e + body;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kRanks; ++r) sum += to_float(reinterpret_cast<const T*>(inputs.at[r])[i]);
    T result;
    from_float(sum, result);
#pragma unroll
    for (int r = 0; r < kRanks; ++r) reinterpret_cast<T*>(outputs.at[r])[i] = result;
  }
}

template <typename T, int kRanks>
__global__ void __launch_bounds__(kThreads)
    two_shot(const __grid_constant__ Peers outputs, const __grid_constant__ Peers inputs,
             const __grid_constant__ Peers flags, Cut cut, int rank, uint32_t epoch) {
  barrier_of_same_blocks<kRanks>(flags, rank, epoch);
  reduce_vectors<T, kRanks>(outputs, inputs, cut, rank);
  reduce_edges<T, kRanks>(outputs, inputs, cut, rank);
  barrier_of_same_blocks<kRanks>(flags, rank, epoch + 1);
}

bool same_alignment(const Peers& peers, int ranks, uintptr_t misalignment) {
  for (int r = 0; r < ranks; ++r) {
    if (reinterpret_cast<uintptr_t>(peers.at[r]) % kVectorBytes != misalignment) return false;
  }
  return true;
}

template <typename T, int kRanks>
void launch(State& self, const cb_step& step, cudaStream_t stream) {
  Peers inputs = {}, outputs = {}, flags = {};
  for (int r = 0; r < kRanks; ++r) {
    inputs.at[r] = static_cast<char*>(step.input.peer[r]);
    outputs.at[r] = static_cast<char*>(step.output.peer[r]);
    flags.at[r] = static_cast<char*>(self.flags.peer[r]);
  }
  uintptr_t misalignment = reinterpret_cast<uintptr_t>(outputs.at[0]) % kVectorBytes;
  Cut cut = {step.count, step.count, 0, same_alignment(inputs, kRanks, misalignment)};
  if (same_alignment(outputs, kRanks, misalignment)) {
    size_t to_boundary = (kVectorBytes - misalignment) % kVectorBytes / sizeof(T);
    cut.head = std::min(step.count, to_boundary);
    cut.vectors = (step.count - cut.head) / Vector<T>::kSize;
  }
  size_t work = std::max(cut.vectors, step.count - cut.vectors * Vector<T>::kSize);
  size_t share = (work + kRanks - 1) / kRanks;
  size_t blocks = std::min<size_t>((share + kThreads - 1) / kThreads, kMaxBlocks);
  two_shot<T, kRanks><<<static_cast<int>(blocks), kThreads, 0, stream>>>(
      outputs, inputs, flags, cut, self.rank, self.epoch + 1);
  self.epoch += 2;
}

template <typename T>
void launch(State& self, const cb_step& step, cudaStream_t stream) {
  switch (self.world_size) {
    case 2:
      return launch<T, 2>(self, step, stream);
    case 3:
      return launch<T, 3>(self, step, stream);
    case 4:
      return launch<T, 4>(self, step, stream);
    case 5:
      return launch<T, 5>(self, step, stream);
    case 6:
      return launch<T, 6>(self, step, stream);
    case 7:
      return launch<T, 7>(self, step, stream);
    case 8:
      return launch<T, 8>(self, step, stream);
  }
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  int world_size = cb_world_size(context);
  if (world_size > kMaxRanks) return CB_ERR_UNSUPPORTED;
  bool supported = args->dtype == CB_F32 || args->dtype == CB_F16 || args->dtype == CB_BF16;
  if (!supported || args->redop != CB_SUM) return CB_ERR_UNSUPPORTED;
  State* self = new State{cb_rank(context), world_size, args->dtype, {}, 0};
  *state = self;
  return cb_sym_alloc(context, kMaxBlocks * kFlagStride * sizeof(uint32_t), &self->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State& self = *static_cast<State*>(state);
  if (step->count == 0) return CB_OK;  // on every rank alike
  switch (self.dtype) {
    case CB_F32:
      launch<float>(self, *step, stream);
      break;
    case CB_F16:
      launch<__half>(self, *step, stream);
      break;
    default:
      launch<__nv_bfloat16>(self, *step, stream);
      break;
  }
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
