// expect: limit|timeout|compile_error
// option: timeout_ms=20000
// option: file_mib=32
char data[100ull << 30] = {1};
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
