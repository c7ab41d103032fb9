// expect: forbidden
// forbid-include: mpi*.h
// reason: mpi_header.cc:4: mpi.h may not be included: the task forbids it
#include <mpi.h>
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
