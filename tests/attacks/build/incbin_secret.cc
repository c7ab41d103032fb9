// expect: compile_error
// The assembler would put any file it can open into the library.
asm(".section .rodata\n.incbin \"/tmp/commbench-planted-secret\"\n.text\n");
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
