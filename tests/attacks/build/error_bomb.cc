// expect: compile_error
// reason: printed more than
#define X1(a) a a a a a a a a a a
#define X2(a) X1(X1(a))
#define X4(a) X2(X2(a))
X4(undeclared();)
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
