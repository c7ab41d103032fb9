// expect: forbidden
// reason: line_directive_spliced.cc:3: #line is not allowed
%: /* hidden */ li\
ne 7 "/usr/include/stdio.h"
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
