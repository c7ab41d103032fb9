// expect: forbidden
// reason: openssl/sha.h may not be included
#include "../../usr/include/openssl/sha.h"
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
