// expect: ok|compile_error|forbidden
#include "/dev/stdin"
#include "/dev/fd/0"
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
