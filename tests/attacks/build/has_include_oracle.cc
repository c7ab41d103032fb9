// expect: ok
// Existence of a file would be one bit about the machine.
#if __has_include("/etc/passwd") || __has_include("/root/.bashrc") || \
    __has_include("/tmp/commbench-planted-secret") || __has_include("/proc/1/environ")
#error a file of the machine is visible
#endif
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
