// expect: forbidden
// reason: device code that the compiler did not make
asm(".section .nv_fatbin,\"a\"\n.quad 0x00100001ba55ed50, 16, 1, 2\n.text\n");
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
