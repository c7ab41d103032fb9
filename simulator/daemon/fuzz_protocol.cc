// fuzz_protocol [first seed] [number of seeds]: random and damaged messages for the daemon. Stops
// at the first seed that a host of another rank notices; a crash shows its seed, which is printed
// before it runs.

#include <cstdio>
#include <cstdlib>

#include "simulator/daemon/testing/protocol_fuzz.h"

int main(int argc, char** argv) {
  constexpr int kMessages = 2000;
  uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    std::string fault = cb::sim::fuzz_protocol(seed, kMessages);
    if (fault.empty()) continue;
    std::printf("%s\n", fault.c_str());
    return 1;
  }
  return 0;
}
