// expect: compile_error
// The assembler prints the lines that it does not understand.
asm(".include \"/proc/self/environ\"");
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
