// Driver functions that do not exist here: see cudart/refused.cc. They do not touch the runtime's
// last error, and are hidden, because libcuda.so.1 exports the names.

namespace cb::sim::client {
int refuse_driver(const char* name, bool& said);
}

#define CB_REFUSED(name)                                \
  extern "C" int name() {                               \
    static bool said;                                   \
    return cb::sim::client::refuse_driver(#name, said); \
  }
#include "simulator/shims/cuda/refused.inc"
#undef CB_REFUSED
