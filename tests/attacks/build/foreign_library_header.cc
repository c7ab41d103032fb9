// expect: forbidden
// reason: foreign_library_header.cc:4: openssl/sha.h may not be included: only CUDA
#define HEADER <openssl/sha.h>
#include HEADER
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
