// expect: limit|timeout|compile_error
// option: memory_mib=300
// option: timeout_ms=15000
asm(".rept 2000000000\n.byte 1\n.endr\n");
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
