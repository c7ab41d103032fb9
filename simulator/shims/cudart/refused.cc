// Runtime functions that do not exist here. Each says its name once and returns
// cudaErrorNotSupported. NVIDIA's headers stay out of this file: a stub takes any arguments, which
// the x86-64 calling convention lets it ignore.

namespace cb::sim::client {
int refuse_runtime(const char* name, bool& said);
}

#define CB_REFUSED(name)                                         \
  extern "C" __attribute__((visibility("default"))) int name() { \
    static bool said;                                            \
    return cb::sim::client::refuse_runtime(#name, said);         \
  }
#include "simulator/shims/cudart/refused.inc"
#undef CB_REFUSED
