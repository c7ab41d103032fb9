// expect: forbidden
// reason: nvrtc_without_link.cc:3: nvrtc.h may not be included: the task does not link nvrtc
#include <nvrtc.h>
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
