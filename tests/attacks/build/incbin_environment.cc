// expect: ok|compile_error
asm(".section .rodata\n.incbin \"/proc/self/environ\"\n.text\n");
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
