// One warp does everything; lane r talks to rank r. A value travels as two 8-byte words of 32 bits
// of the value and the 32-bit number of its round, so each word says by itself whether it is the
// one that is waited for: no fence and no separate flag, and a round costs one crossing of the
// link. 8-byte accesses are single-copy atomic, and nothing else has to be ordered with them.
//
// Rounds are numbered from the first call on, and two sets of slots alternate, so that a word of
// round n overwrites one of round n - 2. Nobody still needs that one: the sender is in round n
// because it has received this rank's word of round n - 1, which depends on all values of round n
// - 2. Slots start as zero, and no round has that number.

#include <commbench/families/utility.h>

namespace {

constexpr int kMaxRanks = 8;

/// What one rank receives: [set][sender][half].
struct Slots {
  uint64_t word[2][kMaxRanks][2];
};

struct Peers {
  Slots* at[kMaxRanks];
};

struct State {
  int rank;
  int world_size;
  cb_span slots;
  uint32_t rounds_done;
};

__device__ void store_word(uint64_t* to, uint32_t half, uint32_t round) {
  uint64_t word = static_cast<uint64_t>(round) << 32 | half;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

__device__ uint32_t wait_for_word(const uint64_t* from, uint32_t round) {
  uint64_t word;
  do {
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  } while (static_cast<uint32_t>(word >> 32) != round);
  return static_cast<uint32_t>(word);
}

__global__ void __launch_bounds__(32)
    chain(const __grid_constant__ Peers slots, const uint64_t* input, uint64_t* output,
          uint64_t rounds, uint32_t rounds_done, int rank, int ranks) {
  int lane = static_cast<int>(threadIdx.x);
  uint64_t value = *input;
  for (uint64_t k = 0; k < rounds; ++k) {
    uint32_t round = rounds_done + 1 + static_cast<uint32_t>(k);
    uint64_t received = value;
    if (lane < ranks && lane != rank) {
      uint64_t* theirs = slots.at[lane]->word[round % 2][rank];
      store_word(&theirs[0], static_cast<uint32_t>(value), round);
      store_word(&theirs[1], static_cast<uint32_t>(value >> 32), round);
      const uint64_t* mine = slots.at[rank]->word[round % 2][lane];
      uint64_t low = wait_for_word(&mine[0], round);
      received = low | static_cast<uint64_t>(wait_for_word(&mine[1], round)) << 32;
    }
    value = cb_mix_begin(rank);
    for (int r = 0; r < ranks; ++r) {
      value = cb_mix_add(value, __shfl_sync(0xffffffff, received, r));
    }
    if (lane == 0) output[k] = value;
  }
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  (void)args;
  int world_size = cb_world_size(context);
  if (world_size > kMaxRanks) return CB_ERR_UNSUPPORTED;
  State* self = new State{cb_rank(context), world_size, {}, 0};
  *state = self;
  return cb_sym_alloc(context, sizeof(Slots), &self->slots);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State& self = *static_cast<State*>(state);
  if (step->rounds == 0) return CB_OK;  // on every rank alike
  Peers slots = {};
  for (int r = 0; r < self.world_size; ++r) slots.at[r] = static_cast<Slots*>(self.slots.peer[r]);
  chain<<<1, 32, 0, stream>>>(slots, static_cast<const uint64_t*>(step->input.local),
                              static_cast<uint64_t*>(step->output.local), step->rounds,
                              self.rounds_done, self.rank, self.world_size);
  self.rounds_done += static_cast<uint32_t>(step->rounds);
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
