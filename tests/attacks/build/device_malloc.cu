// expect: forbidden
// reason: device-side malloc, free, new or delete is not allowed
__global__ void kernel(int** out) { *out = new int[4]; }
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
