// expect: ok
const char* text = R"x(
#line 7 "a"
)x";  // only text
const int number = 1'000;
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
