// expect: forbidden
// link: nccl
// forbid-symbol: ncclAll*
// reason: the library uses ncclAllReduce, which the task forbids
#include <nccl.h>

void* hidden = reinterpret_cast<void*>(&ncclAllReduce);
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
