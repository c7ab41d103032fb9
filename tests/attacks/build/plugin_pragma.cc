// expect: ok|compile_error
#pragma GCC plugin "/box/src/evil.so"
#pragma GCC optimize("-fplugin=/box/src/evil.so")
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
