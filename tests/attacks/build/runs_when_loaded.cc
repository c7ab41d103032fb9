// expect: ok
// Proof that the library is never loaded on the trusted side: the test looks for the file.
#include <stdio.h>

__attribute__((constructor)) static void leave_trace() {
  if (FILE* file = fopen("/tmp/commbench-build-loaded", "w")) fclose(file);
}
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
