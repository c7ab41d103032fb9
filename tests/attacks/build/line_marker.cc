// expect: forbidden
// reason: line_marker.cc:3: #line is not allowed
# 1 "/usr/include/stdio.h" 1 3
#include <openssl/sha.h>
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
