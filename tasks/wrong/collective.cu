// The family's deliberately wrong candidate: correct, simple and slow, except for what the mode in
// COMMBENCH_WRONG_MODE leaves out. `task check` runs it in every mode that must fail, and as
// "correct", which must pass.
//
// One block copies the input into symmetric scratch, waits for all ranks, takes what it needs from
// all scratches element by element, and waits again before the scratch may be overwritten.

#include <commbench/families/collective.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdlib.h>
#include <string.h>

namespace {

constexpr int kThreads = 1024;
constexpr int kMaxRanks = 64;
constexpr size_t kFlagBytes = kMaxRanks * sizeof(uint64_t);

enum Mode {
  kCorrect,
  kZeros,
  kOwnInput,
  kOwnShard,
  kStale,
  kSkipRank,
  kSkipTail,
  kNothing,
  kUnknown
};
const char* const kModeNames[] = {"correct", "zeros",     "own-input", "own-shard",
                                  "stale",   "skip-rank", "skip-tail", "nothing"};

Mode mode_from_environment() {
  const char* name = getenv("COMMBENCH_WRONG_MODE");
  for (int mode = 0; name != nullptr && mode < kUnknown; ++mode) {
    if (strcmp(name, kModeNames[mode]) == 0) return static_cast<Mode>(mode);
  }
  return kUnknown;
}

struct Peers {
  char* at[kMaxRanks];  // flags, then a copy of the rank's input
};

struct Job {
  int rank;
  int ranks;
  cb_collective collective;
  cb_dtype dtype;
  cb_redop op;
  int element_bytes;
  Mode mode;
};

struct State {
  Job job;
  cb_span scratch;
  uint64_t epoch;
};

__device__ void barrier(const Peers& scratch, const Job& job, uint64_t epoch) {
  __syncthreads();
  if (threadIdx.x < job.ranks) {
    uint64_t* theirs = reinterpret_cast<uint64_t*>(scratch.at[threadIdx.x]) + job.rank;
    uint64_t* mine = reinterpret_cast<uint64_t*>(scratch.at[job.rank]) + threadIdx.x;
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(theirs), "l"(epoch) : "memory");
    uint64_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(mine) : "memory");
    } while (seen < epoch);
  }
  __syncthreads();
}

__device__ uint64_t load_bits(const char* from, size_t index, int bytes) {
  switch (bytes) {
    case 1:
      return reinterpret_cast<const uint8_t*>(from)[index];
    case 2:
      return reinterpret_cast<const uint16_t*>(from)[index];
    case 4:
      return reinterpret_cast<const uint32_t*>(from)[index];
    default:
      return reinterpret_cast<const uint64_t*>(from)[index];
  }
}

__device__ void store_bits(char* to, size_t index, int bytes, uint64_t bits) {
  switch (bytes) {
    case 1:
      reinterpret_cast<uint8_t*>(to)[index] = static_cast<uint8_t>(bits);
      break;
    case 2:
      reinterpret_cast<uint16_t*>(to)[index] = static_cast<uint16_t>(bits);
      break;
    case 4:
      reinterpret_cast<uint32_t*>(to)[index] = static_cast<uint32_t>(bits);
      break;
    default:
      reinterpret_cast<uint64_t*>(to)[index] = bits;
      break;
  }
}

template <typename To, typename From>
__device__ To bits_as(From bits) {
  To value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

__device__ double float_value(uint64_t bits, cb_dtype dtype) {
  switch (dtype) {
    case CB_F16:
      return __half2float(bits_as<__half>(bits));
    case CB_BF16:
      return __bfloat162float(bits_as<__nv_bfloat16>(bits));
    case CB_F32:
      return bits_as<float>(bits);
    default:
      return bits_as<double>(bits);
  }
}

__device__ uint64_t float_bits(double value, cb_dtype dtype) {
  float narrow = static_cast<float>(value);
  switch (dtype) {
    case CB_F16:
      return bits_as<uint16_t>(__float2half_rn(narrow));
    case CB_BF16:
      return bits_as<uint16_t>(__float2bfloat16_rn(narrow));
    case CB_F32:
      return bits_as<uint32_t>(narrow);
    default:
      return bits_as<uint64_t>(value);
  }
}

template <typename T>
__device__ T combine(T a, T b, cb_redop op) {
  switch (op) {
    case CB_SUM:
      return a + b;
    case CB_PROD:
      return a * b;
    case CB_MIN:
      return b < a ? b : a;
    default:
      return a < b ? b : a;
  }
}

/// Both operands as bits of the element type; signed comparison where the type is signed.
__device__ uint64_t combine_integers(uint64_t a, uint64_t b, cb_dtype dtype, cb_redop op) {
  if (op == CB_SUM || op == CB_PROD || dtype == CB_U8) return combine(a, b, op);
  if (dtype == CB_I32) return combine(static_cast<int32_t>(a), static_cast<int32_t>(b), op);
  return combine(static_cast<int64_t>(a), static_cast<int64_t>(b), op);
}

__device__ uint64_t reduced_bits(const Peers& scratch, const Job& job, size_t index) {
  bool is_float = job.dtype >= CB_F16;
  int skipped = job.mode == kSkipRank ? (job.rank + 1) % job.ranks : -1;
  bool first = true;
  double sum = 0;
  uint64_t bits = 0;
  for (int r = 0; r < job.ranks; ++r) {
    if (r == skipped) continue;
    uint64_t next = load_bits(scratch.at[r] + kFlagBytes, index, job.element_bytes);
    if (is_float) {
      double value = float_value(next, job.dtype);
      sum = first ? value : combine(sum, value, job.op);
    } else {
      bits = first ? next : combine_integers(bits, next, job.dtype, job.op);
    }
    first = false;
  }
  return is_float ? float_bits(sum, job.dtype) : bits;
}

/// Output element `i` of `elements`; false: leave it as it is.
__device__ bool output_bits(const Peers& scratch, const Job& job, size_t count, size_t elements,
                            int root, size_t i, uint64_t* bits) {
  const char* own = scratch.at[job.rank] + kFlagBytes;
  bool blocks = elements != count;
  int source = blocks ? static_cast<int>(i / count) : root;
  size_t own_block = job.rank * count;
  bool reduces = job.collective == CB_ALL_REDUCE || job.collective == CB_REDUCE_SCATTER;
  if (job.mode == kZeros) {
    *bits = 0;
    return true;
  }
  if (job.mode == kNothing || (job.mode == kSkipTail && i + 1 == elements)) return false;
  if (job.mode == kOwnInput) {
    size_t from = job.collective == CB_ALL_GATHER       ? i % count
                  : job.collective == CB_REDUCE_SCATTER ? own_block + i
                                                        : i;
    *bits = load_bits(own, from, job.element_bytes);
    return true;
  }
  if (job.mode == kOwnShard) {
    bool in_shard =
        blocks ? source == job.rank
               : i >= elements * job.rank / job.ranks && i < elements * (job.rank + 1) / job.ranks;
    if (!in_shard) return false;
  }
  if (reduces) {
    *bits = reduced_bits(scratch, job, job.collective == CB_REDUCE_SCATTER ? own_block + i : i);
    return true;
  }
  if (job.mode == kSkipRank && source == (job.rank + 1) % job.ranks) return false;
  size_t within = blocks ? i % count : i;
  size_t from = job.collective == CB_ALL_TO_ALL ? own_block + within : within;
  *bits = load_bits(scratch.at[source] + kFlagBytes, from, job.element_bytes);
  return true;
}

__global__ void __launch_bounds__(kThreads)
    collective(char* output, const char* input, size_t count, size_t in_elements,
               size_t out_elements, int root, const __grid_constant__ Peers scratch,
               const __grid_constant__ Job job, uint64_t epoch) {
  char* staged = scratch.at[job.rank] + kFlagBytes;
  for (size_t i = threadIdx.x; i < in_elements; i += kThreads) {
    store_bits(staged, i, job.element_bytes, load_bits(input, i, job.element_bytes));
  }
  barrier(scratch, job, epoch);
  for (size_t i = threadIdx.x; i < out_elements; i += kThreads) {
    uint64_t bits = 0;
    if (output_bits(scratch, job, count, out_elements, root, i, &bits)) {
      store_bits(output, i, job.element_bytes, bits);
    }
  }
  barrier(scratch, job, epoch + 1);
}

constexpr int kElementBytes[] = {1, 4, 8, 2, 2, 4, 8};  // by cb_dtype

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  Mode mode = mode_from_environment();
  int ranks = cb_world_size(context);
  if (mode == kUnknown || ranks > kMaxRanks) return CB_ERR_UNSUPPORTED;
  int element_bytes = kElementBytes[args->dtype];
  Job job = {cb_rank(context), ranks, args->collective, args->dtype, args->redop,
             element_bytes,    mode};
  State* self = new State{job, {}, 0};
  *state = self;
  size_t input_bytes = args->max_count * static_cast<size_t>(ranks * element_bytes);
  return cb_sym_alloc(context, kFlagBytes + input_bytes, &self->scratch);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State& self = *static_cast<State*>(state);
  if (step->count == 0) return CB_OK;
  Peers scratch = {};
  for (int r = 0; r < self.job.ranks; ++r) {
    scratch.at[r] = static_cast<char*>(self.scratch.peer[r]);
  }
  Job job = self.job;
  if (job.mode == kStale) job.mode = self.epoch == 0 ? kCorrect : kNothing;
  size_t element_bytes = static_cast<size_t>(job.element_bytes);
  collective<<<1, kThreads, 0, stream>>>(
      static_cast<char*>(step->output.local), static_cast<const char*>(step->input.local),
      step->count, step->input.bytes / element_bytes, step->output.bytes / element_bytes,
      step->root, scratch, job, self.epoch + 1);
  self.epoch += 2;
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
