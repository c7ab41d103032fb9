// Each rank copies its input into a symmetric staging area, tells its peers, waits for them, and
// adds up what it loads from all staging areas. Staging costs a local copy, which overlaps with
// nothing but is short for the sizes of this algorithm, and buys three things: one barrier instead
// of two, aligned 16-byte loads across the link whatever the alignment of the input, and in-place
// calls that need no special care, because nobody reads an input but its owner.
//
// Two staging areas alternate. Call e overwrites the area of call e - 2, whose readers are done: a
// peer's flag of call e - 1 comes from a kernel that started after the peer's kernel of call e - 2
// had finished, and this rank's kernel e starts after its kernel e - 1 has seen those flags.
//
// Blocks synchronise with the blocks of the same number on the other ranks only, because a block
// reads just the vectors that those staged. The grid is small enough to be resident at once.

#include <commbench/families/collective.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

namespace {

constexpr int kThreads = 512;
constexpr int kMaxBlocks = 48;
constexpr int kMaxRanks = 8;
constexpr int kFlagStride = 32;  // 128 bytes per block
constexpr size_t kFlagBytes = kMaxBlocks * kFlagStride * sizeof(uint32_t);
constexpr size_t kVectorBytes = 16;

struct Peers {
  char* at[kMaxRanks];
};

struct State {
  int rank;
  int world_size;
  cb_dtype dtype;
  size_t area_bytes;
  cb_span scratch;  // flags, then two staging areas
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

/// Elements [first, first + kSize) of a possibly misaligned array, zero from `count` on.
template <typename T>
__device__ Vector<T> load_any(const T* from, size_t first, size_t count, bool aligned) {
  Vector<T> vector;
  if (aligned && first + Vector<T>::kSize <= count) {
    return *reinterpret_cast<const Vector<T>*>(from + first);
  }
#pragma unroll
  for (int i = 0; i < Vector<T>::kSize; ++i) {
    if (first + i < count) {
      vector.element[i] = from[first + i];
    } else {
      from_float(0.0f, vector.element[i]);
    }
  }
  return vector;
}

template <typename T>
__device__ void store_any(T* to, size_t first, size_t count, bool aligned,
                          const Vector<T>& vector) {
  if (aligned && first + Vector<T>::kSize <= count) {
    *reinterpret_cast<Vector<T>*>(to + first) = vector;
    return;
  }
#pragma unroll
  for (int i = 0; i < Vector<T>::kSize; ++i) {
    if (first + i < count) to[first + i] = vector.element[i];
  }
}

/// Waits until the blocks of this number have got here on all ranks. What they stored before is
/// visible to this block afterwards: their stores are ordered before the flag by their block
/// barrier and the cumulative release, and the acquire is extended to this block by its second
/// barrier.
template <int kRanks>
__device__ void barrier_of_same_blocks(const Peers& scratch, int rank, uint32_t epoch) {
  __syncthreads();
  if (threadIdx.x < kRanks) {
    uint32_t* theirs = reinterpret_cast<uint32_t*>(scratch.at[threadIdx.x]);
    uint32_t* mine = reinterpret_cast<uint32_t*>(scratch.at[rank]);
    size_t block = size_t{blockIdx.x} * kFlagStride;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs + block + rank), "r"(epoch)
                 : "memory");
    uint32_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(mine + block + threadIdx.x)
                   : "memory");
      // A peer may be a call ahead; the difference stays right when the counter wraps.
    } while (static_cast<int32_t>(seen - epoch) < 0);
  }
  __syncthreads();
}

template <typename T, int kRanks>
__global__ void __launch_bounds__(kThreads)
    one_shot(T* output, const T* input, size_t count, const __grid_constant__ Peers scratch,
             size_t area, int rank, uint32_t epoch) {
  constexpr int kSize = Vector<T>::kSize;
  size_t vectors = (count + kSize - 1) / kSize;
  size_t first = size_t{blockIdx.x} * kThreads + threadIdx.x;
  size_t stride = size_t{gridDim.x} * kThreads;
  bool input_aligned = reinterpret_cast<uintptr_t>(input) % kVectorBytes == 0;
  bool output_aligned = reinterpret_cast<uintptr_t>(output) % kVectorBytes == 0;

  Vector<T>* staged = reinterpret_cast<Vector<T>*>(scratch.at[rank] + area);
  for (size_t v = first; v < vectors; v += stride) {
    staged[v] = load_any(input, v * kSize, count, input_aligned);
  }
  barrier_of_same_blocks<kRanks>(scratch, rank, epoch);
  for (size_t v = first; v < vectors; v += stride) {
    Vector<T> part[kRanks];
#pragma unroll
    for (int r = 0; r < kRanks; ++r) {
      part[r] = reinterpret_cast<const Vector<T>*>(scratch.at[r] + area)[v];
    }
    Vector<T> result;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      float sum = to_float(part[0].element[i]);
#pragma unroll
      for (int r = 1; r < kRanks; ++r) sum += to_float(part[r].element[i]);
      from_float(sum, result.element[i]);
    }
    store_any(output, v * kSize, count, output_aligned, result);
  }
}

template <typename T, int kRanks>
void launch(State& self, const cb_step& step, cudaStream_t stream) {
  Peers scratch = {};
  for (int r = 0; r < kRanks; ++r) scratch.at[r] = static_cast<char*>(self.scratch.peer[r]);
  size_t per_block = size_t{kThreads} * Vector<T>::kSize;
  size_t blocks = std::min<size_t>((step.count + per_block - 1) / per_block, kMaxBlocks);
  ++self.epoch;
  size_t area = kFlagBytes + self.epoch % 2 * self.area_bytes;
  one_shot<T, kRanks><<<static_cast<int>(blocks), kThreads, 0, stream>>>(
      static_cast<T*>(step.output.local), static_cast<const T*>(step.input.local), step.count,
      scratch, area, self.rank, self.epoch);
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
  size_t element_bytes = args->dtype == CB_F32 ? 4 : 2;
  size_t area_bytes =
      (args->max_count * element_bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  State* self = new State{cb_rank(context), world_size, args->dtype, area_bytes, {}, 0};
  *state = self;
  return cb_sym_alloc(context, kFlagBytes + 2 * area_bytes, &self->scratch);
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
