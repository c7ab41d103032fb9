#include <commbench/families/p2p.h>

namespace {

constexpr size_t kFlagBytes = 4096;

struct State {
  cb_p2p_role role;
  int partner;
  cb_span flags;  // zeroed; flags.peer[partner] is the partner's copy
};

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  State* self = new State{args->role, args->partner, {}};
  *state = self;
  return cb_sym_alloc(context, kFlagBytes, &self->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  const State& self = *static_cast<State*>(state);
  if (step->bytes == 0) return CB_OK;
  // Sender: copy step->source.local to step->target.peer[self.partner], then signal.
  // Receiver: wait for the signal, then copy step->target.local to step->output.local.
  (void)self;
  (void)stream;
  return CB_ERR_UNSUPPORTED;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
