// expect: compile_error
// reason: cb_setup is not defined
int cb_setup() { return 0; }  // C++ linkage
