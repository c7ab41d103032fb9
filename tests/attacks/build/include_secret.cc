// expect: compile_error
#include "/tmp/commbench-planted-secret"
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
