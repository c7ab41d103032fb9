// expect: ok
// forbid-include: nccl.h
#if 0
#include <nccl.h>
#endif
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
