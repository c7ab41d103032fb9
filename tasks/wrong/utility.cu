// The family's deliberately wrong candidate: correct, simple and slow, except for what the mode in
// COMMBENCH_WRONG_MODE leaves out. See collective.cu.
//
// Every round has two barriers: one after all values are in their slots, and one after all ranks
// have read them.

#include <commbench/families/utility.h>
#include <stdlib.h>
#include <string.h>

namespace {

constexpr int kMaxRanks = 32;

enum Mode { kCorrect, kZeros, kOwnInput, kStale, kSkipRank, kSkipTail, kNothing, kUnknown };
const char* const kModeNames[] = {"correct",   "zeros",     "own-input", "stale",
                                  "skip-rank", "skip-tail", "nothing"};

Mode mode_from_environment() {
  const char* name = getenv("COMMBENCH_WRONG_MODE");
  for (int mode = 0; name != nullptr && mode < kUnknown; ++mode) {
    if (strcmp(name, kModeNames[mode]) == 0) return static_cast<Mode>(mode);
  }
  return kUnknown;
}

struct Scratch {
  uint64_t value;            // of this rank
  uint64_t flag[kMaxRanks];  // by sender
};

struct Peers {
  Scratch* at[kMaxRanks];
};

struct State {
  int rank;
  int ranks;
  Mode mode;
  cb_span scratch;
  uint64_t epoch;
};

/// By one warp; lane r signals rank r and waits for it.
__device__ void barrier(const Peers& peers, int rank, int ranks, uint64_t epoch) {
  __syncwarp();
  int lane = static_cast<int>(threadIdx.x);
  if (lane < ranks) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(&peers.at[lane]->flag[rank]),
                 "l"(epoch)
                 : "memory");
    uint64_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                   : "=l"(seen)
                   : "l"(&peers.at[rank]->flag[lane])
                   : "memory");
    } while (seen < epoch);
  }
  __syncwarp();
}

__global__ void __launch_bounds__(32)
    chain(const __grid_constant__ Peers peers, const uint64_t* input, uint64_t* output,
          uint64_t rounds, uint64_t epoch, int rank, int ranks, Mode mode) {
  uint64_t value = *input;
  uint64_t start = value;
  for (uint64_t k = 0; k < rounds; ++k) {
    if (threadIdx.x == 0) peers.at[rank]->value = value;
    barrier(peers, rank, ranks, ++epoch);
    uint64_t next = cb_mix_begin(rank);
    for (int r = 0; r < ranks; ++r) {
      bool skipped = mode == kSkipRank && r == (rank + 1) % ranks;
      next = cb_mix_add(next, skipped ? value : peers.at[r]->value);
    }
    barrier(peers, rank, ranks, ++epoch);
    value = next;
    bool writes = mode != kNothing && !(mode == kSkipTail && k + 1 == rounds);
    if (threadIdx.x == 0 && writes) {
      output[k] = mode == kZeros ? 0 : mode == kOwnInput ? start : value;
    }
  }
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  (void)args;
  State* self = new State{cb_rank(context), cb_world_size(context), mode_from_environment(), {}, 0};
  *state = self;
  if (self->mode == kUnknown || self->ranks > kMaxRanks) return CB_ERR_UNSUPPORTED;
  return cb_sym_alloc(context, sizeof(Scratch), &self->scratch);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State& self = *static_cast<State*>(state);
  if (step->rounds == 0) return CB_OK;
  Peers peers = {};
  for (int r = 0; r < self.ranks; ++r) peers.at[r] = static_cast<Scratch*>(self.scratch.peer[r]);
  Mode mode = self.mode;
  if (mode == kStale) mode = self.epoch == 0 ? kCorrect : kNothing;
  chain<<<1, 32, 0, stream>>>(peers, static_cast<const uint64_t*>(step->input.local),
                              static_cast<uint64_t*>(step->output.local), step->rounds, self.epoch,
                              self.rank, self.ranks, mode);
  self.epoch += 2 * step->rounds;
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
