// expect: compile_error|timeout
// option: timeout_ms=20000
constexpr unsigned long spin(unsigned long turns) {
  unsigned long sum = 0;
  for (unsigned long turn = 0; turn < turns; ++turn) sum += turn;
  return sum;
}
constexpr unsigned long forever = spin(~0ul);
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
