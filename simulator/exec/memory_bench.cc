// Nanoseconds per warp-instruction of the memory handlers that copies and reductions are made of.

#include <benchmark/benchmark.h>

#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

struct Case {
  const char* name;
  const char* text;
  int32_t stride;  ///< of the addresses; 0: uniform, -1: scattered
};
constexpr Case kCases[] = {
    {"ld.v4.b32", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];", 16},
    {"st.v4.b32", "st.global.v4.u32 [%rd0], {%r1, %r2, %r3, %r4};", 16},
    {"ld.v2.b64", "ld.global.v2.u64 {%rd1, %rd2}, [%rd0];", 16},
    {"st.v2.b64", "st.global.v2.u64 [%rd0], {%rd1, %rd2};", 16},
    {"ld.b32", "ld.global.u32 %r1, [%rd0];", 4},
    {"st.b32", "st.global.u32 [%rd0], %r1;", 4},
    {"ld.b64", "ld.global.u64 %rd1, [%rd0];", 8},
    {"ld.b32/uniform", "ld.global.u32 %r1, [%rd0];", 0},
    {"ld.b32/scattered", "ld.global.u32 %r1, [%rd0];", -1},
    {"ld.volatile.v4.b32", "ld.volatile.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];", 16},
    {"ld.shared.b32", "ld.shared.u32 %r1, [%r0];", 4},
    {"st.shared.b32", "st.shared.u32 [%r0], %r1;", 4},
    {"ld.param.b64", "ld.param.u64 %rd1, [p+8];", 0},
    {"st.local.b32", "st.local.u32 [%rd0], %r1;", 0},
    {"red.add.u32", "red.global.add.u32 [%rd0], %r1;", 4},
    {"shfl.bfly", "shfl.sync.bfly.b32 %r1, %r2, 4, 31, -1;", 0},
    {"ldmatrix.x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r0];", 16},
    {"mma.m16n8k16.f16",
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
     "%r4}, "
     "{%r1, %r2}, {%f1, %f2, %f3, %f4};",
     0},
    {"mma.m16n8k32.s8",
     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4}, "
     "{%r1, %r2}, {%r5, %r6, %r7, %r8};",
     0},
    {"wgmma.m64n128k16.bf16",
     "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f10, %f11, %f12, %f13, %f14, %f15, "
     "%f16, %f17, %f18, %f19, %f20, %f21, %f22, %f23, %f24, %f25, %f26, %f27, %f28, %f29, %f30, "
     "%f31, %f32, %f33, %f34, %f35, %f36, %f37, %f38, %f39, %f40, %f41, %f42, %f43, %f44, %f45, "
     "%f46, %f47, %f48, %f49, %f50, %f51, %f52, %f53, %f54, %f55, %f56, %f57, %f58, %f59, %f60, "
     "%f61, %f62, %f63, %f64, %f65, %f66, %f67, %f68, %f69, %f70, %f71, %f72, %f73}, %rd1, %rd2, "
     "1, 1, 1, 0, 0;",
     0},
    {"cvta.to.global", "cvta.to.global.u64 %rd1, %rd0;", 16},
};

void run_case(benchmark::State& state, const Case& test, bool timed, uint32_t mask) {
  MemoryRig rig(test.text);
  std::string text = test.text;
  bool narrow = text.find("%r0") != std::string::npos;
  uint64_t buffer = rig.allocate(0, 4096);
  if (text.find("%rd0") != std::string::npos || narrow) {
    uint64_t base = narrow || text.find("local") != std::string::npos ? 0 : buffer;
    std::string name = narrow ? "%r0" : "%rd0";
    if (test.stride >= 0) {
      rig.set_affine(name, base, test.stride);
    } else {
      LaneValues addresses;
      for (uint64_t i = 0; i < kLanes; ++i) addresses.low[i] = base + (i * 7 % 32) * 64;
      rig.set(name, addresses);
    }
  }
  for (const char* name : {"%r1", "%r2", "%r3", "%r4"}) {
    if (text.find(name) != std::string::npos) rig.set(name, LaneValues{});
  }
  if (text.find("wgmma") != std::string::npos) {
    // Bricks of 128 bytes, the two of a row next to each other.
    for (const char* name : {"%rd1", "%rd2"}) rig.set_affine(name, 0x0000001000080000, 0);
  }
  static const WatchFilter kNobodyWaits;
  rig.context().watch = &kNobodyWaits;
  rig.context().timed = timed;
  rig.set_mask(mask, mask == kAllLanes);
  if (!rig.run()) return state.SkipWithError("the access is refused");
  for (auto _ : state) {
    benchmark::DoNotOptimize(rig.run_once());
    rig.gathered.clear();
    benchmark::ClobberMemory();
  }
}

void register_cases() {
  for (const Case& test : kCases) {
    for (bool timed : {false, true}) {
      for (uint32_t mask : {kAllLanes, 0x0ff0ff0fu}) {
        bool needs_all = std::string(test.text).find(".aligned") != std::string::npos;
        if (needs_all && mask != kAllLanes) continue;
        std::string name = std::string(test.name) + (timed ? "/timed" : "") +
                           (mask == kAllLanes ? "" : "/partial");
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { run_case(state, test, timed, mask); });
      }
    }
  }
}

}  // namespace
}  // namespace cb::sim

int main(int argc, char** argv) {
  cb::sim::register_cases();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
