// expect: compile_error
__global__ void kernel() { asm volatile("no.such.instruction;"); }
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
