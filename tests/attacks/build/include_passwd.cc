// expect: compile_error
// log-lacks: root:
#include "/etc/passwd"
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
