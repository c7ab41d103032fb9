// expect: forbidden
// reason: #embed is not allowed
const char text[] = {
#embed "/etc/passwd"
};
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
