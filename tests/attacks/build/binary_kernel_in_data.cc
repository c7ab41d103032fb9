// expect: forbidden
// reason: holds a binary kernel (a fatbin
// Registered at run time, this would be device code that no compiler of ours has seen.
extern const unsigned long blob[];
const unsigned long blob[] = {0x00100001ba55ed50, 64, 0, 0, 0, 0, 0, 0, 0, 0};
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
