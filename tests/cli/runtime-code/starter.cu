#include <commbench/families/p2p.h>

namespace {

struct State {
  cb_p2p_role role;
  int partner;
};

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  (void)context;
  *state = new State{args->role, args->partner};
  return CB_OK;
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  const State& self = *static_cast<State*>(state);
  if (self.role != CB_P2P_SENDER || step->bytes == 0) return CB_OK;
  // Launch a kernel on `stream` that copies step->bytes bytes from step->source.local to
  // step->target.peer[self.partner].
  (void)stream;
  return CB_ERR_UNSUPPORTED;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
