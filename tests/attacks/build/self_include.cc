// expect: compile_error|limit|timeout
// option: timeout_ms=20000
#include "self_include.cc"
#include "self_include.cc"
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
