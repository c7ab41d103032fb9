// Nanoseconds that the timing of one instruction costs the simulator.

#include <benchmark/benchmark.h>

#include "simulator/timing/resources.h"

namespace cb::sim {
namespace {

struct Case {
  const char* name;
  MemoryAccess::Kind kind;
  uint16_t holder;
  uint32_t sectors;
  uint64_t span_bytes;       ///< from the first to the last byte of an access
  uint64_t footprint_bytes;  ///< that accesses go round in
  uint32_t run = 8;          ///< accesses of one SM in a row
};
constexpr uint64_t kStream = uint64_t{1} << 30;
constexpr Case kCases[] = {
    {"load/stream", MemoryAccess::Kind::kLoad, 0, 16, 512, kStream},
    {"load/stream/alternating", MemoryAccess::Kind::kLoad, 0, 16, 512, kStream, 1},
    {"load/narrow", MemoryAccess::Kind::kLoad, 0, 4, 128, kStream},
    {"load/l2", MemoryAccess::Kind::kLoad, 0, 16, 512, 8 << 20},
    {"load/l1", MemoryAccess::Kind::kLoad, 0, 16, 512, 512},
    {"load/strided", MemoryAccess::Kind::kLoad, 0, 32, 8192, kStream},
    {"load/peer", MemoryAccess::Kind::kLoad, 1, 16, 512, kStream},
    {"store/stream", MemoryAccess::Kind::kStore, 0, 16, 512, kStream},
    {"store/peer", MemoryAccess::Kind::kStore, 1, 16, 512, kStream},
    {"atomic", MemoryAccess::Kind::kAtomic, 0, 1, 4, 4096},
};

void access(benchmark::State& state, const Case& test) {
  Resources resources(value_or_throw(load_profile("h100x8")));
  MemoryAccess access{.kind = test.kind, .device = test.holder, .sectors = test.sectors};
  uint64_t at = 0;
  uint32_t sm = 0;
  uint32_t in_a_row = 0;
  Time now = 0;
  for (auto _ : state) {
    access.address = at;
    access.end = at + test.span_bytes;
    benchmark::DoNotOptimize(resources.access(0, sm, now, access));
    at += test.span_bytes;
    if (at >= test.footprint_bytes) at = 0;
    if (++in_a_row == test.run) {
      in_a_row = 0;
      sm = sm == 131 ? 0 : sm + 1;
    }
    now += test.sectors * 32 * 3;  // 333 GB/s: nothing has a backlog
  }
}

void issue(benchmark::State& state) {
  Resources resources(value_or_throw(load_profile("h100x8")));
  uint32_t sm = 0;
  Time now = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(resources.issue(0, sm, sm, now, 1));
    sm = sm == 131 ? 0 : sm + 1;
    now += 10;
  }
}
BENCHMARK(issue);

}  // namespace
}  // namespace cb::sim

int main(int argc, char** argv) {
  for (const auto& test : cb::sim::kCases) {
    benchmark::RegisterBenchmark(test.name, cb::sim::access, test);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
