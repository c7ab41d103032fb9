// expect: limit|timeout|compile_error
// option: memory_mib=300
// option: timeout_ms=15000
template <int N>
struct Bomb {
  Bomb<N - 1> left;
  struct Other : Bomb<N - 1> {
    Bomb<N - 1> more;
  } right;
  static constexpr int value = Bomb<N - 1>::value + sizeof(Other);
};
template <>
struct Bomb<0> {
  static constexpr int value = 1;
  char bytes[64];
};
template <int A, int B>
struct Grid : Grid<A - 1, B>, Grid<A, B - 1> {};
template <int A>
struct Grid<A, 0> {};
template <int B>
struct Grid<0, B> {};
template <int... I>
struct List {};
template <class L, int N>
struct Make;
template <int... I, int N>
struct Make<List<I...>, N> : Make<List<N, I...>, N - 1>, Make<List<I..., N>, N - 1> {};
template <int... I>
struct Make<List<I...>, 0> {};
Make<List<>, 20> everything;
int size = Bomb<24>::value;
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
