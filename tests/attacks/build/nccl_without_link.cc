// expect: forbidden
// reason: nccl_without_link.cc:3: nccl.h may not be included: the task does not link nccl
#include <nccl.h>
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
