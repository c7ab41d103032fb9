// expect: forbidden
// reason: dynamic parallelism
__global__ void child() {}
__global__ void parent() { child<<<1, 1>>>(); }
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
