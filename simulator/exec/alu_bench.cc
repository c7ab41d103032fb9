// Nanoseconds per warp-instruction of the arithmetic handlers: a block of independent operations,
// run as the executor does.

#include <benchmark/benchmark.h>

#include <random>

#include "simulator/exec/alu_rig.h"

namespace cb::sim {
namespace {

enum Form { kUniform, kAffine, kVector };

void run_form(benchmark::State& state, const std::string& text, Form form, bool full) {
  AluRig rig(text);
  std::mt19937_64 random(1);
  for (size_t reg = 0; reg < rig.num_registers(); ++reg) {
    auto index = static_cast<int32_t>(reg);
    bool vector = form == kVector || rig.type_of(index) == ptx::Type::kPred;
    if (vector) {
      LaneValues values;
      // Numbers of ordinary size whatever the type: in 16-bit formats too.
      for (uint64_t& lane : values.low) {
        lane = (random() & 0x80ff80ff80ff80ff) | 0x3f003f003f003f00;
      }
      rig.set_vector(index, values);
    } else {
      rig.set_affine(index, 0x1000 + 64 * reg, form == kAffine ? 4 : 0);
    }
  }
  rig.context().full = full;
  rig.context().mask = full ? kAllLanes : 0x0ff0ff0f;
  constexpr int kBlock = 64;
  std::vector<MicroOp> ops(kBlock, rig.op());
  for (auto _ : state) {
    for (const MicroOp* op = ops.data(); op != ops.data() + kBlock;) op = op->fn(rig.context(), op);
    benchmark::ClobberMemory();
  }
  state.counters["ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kBlock * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

struct Case {
  const char* name;
  const char* text;
};

constexpr Case kCases[] = {
    {"add.u32", "add.u32 %r0, %r1, 12;"},
    {"add.u32.rr", "add.u32 %r0, %r1, %r2;"},
    {"add.u64", "add.u64 %rd0, %rd1, 4096;"},
    {"and.b32", "and.b32 %r0, %r1, 31;"},
    {"shl.b64", "shl.b64 %rd0, %rd1, 3;"},
    {"mul.lo.s32", "mul.lo.s32 %r0, %r1, 12;"},
    {"mul.lo.s64", "mul.lo.s64 %rd0, %rd1, 12;"},
    {"mul.wide.u32", "mul.wide.u32 %rd0, %r1, 16;"},
    {"mad.lo.s32", "mad.lo.s32 %r0, %r1, 16, %r2;"},
    {"mov.b32", "mov.b32 %r0, %r1;"},
    {"mov.pack", "mov.b64 %rd0, {%r1, %r2};"},
    {"setp.lt.u32", "setp.lt.u32 %p0, %r1, 4096000;"},
    {"setp.eq.s64", "setp.eq.s64 %p0, %rd1, 0;"},
    {"selp.b32", "selp.b32 %r0, %r1, %r2, %p1;"},
    {"cvt.u64.u32", "cvt.u64.u32 %rd0, %r1;"},
    {"cvt.u32.u64", "cvt.u32.u64 %r0, %rd1;"},
    {"cvt.u32.u8", "cvt.u32.u8 %r0, %r1;"},
    {"cvt.f32.bf16", "cvt.f32.bf16 %f0, %h1;"},
    {"cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %r0, %f1, %f2;"},
    {"cvt.f32.f16", "cvt.f32.f16 %f0, %h1;"},
    {"cvt.rn.f32.s32", "cvt.rn.f32.s32 %f0, %r1;"},
    {"cvt.rzi.s32.f32", "cvt.rzi.s32.f32 %r0, %f1;"},
    {"cvt.e4m3x2.f32", "cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2;"},
    {"cvt.f16x2.e4m3x2", "cvt.rn.f16x2.e4m3x2 %r0, %h1;"},
    {"add.f32", "add.f32 %f0, %f1, %f2;"},
    {"fma.f32", "fma.rn.f32 %f0, %f1, %f2, %f3;"},
    {"max.f32", "max.f32 %f0, %f1, %f2;"},
    {"add.f64", "add.f64 %fd0, %fd1, %fd2;"},
    {"add.bf16x2", "add.bf16x2 %r0, %r1, %r2;"},
    {"fma.bf16x2", "fma.rn.bf16x2 %r0, %r1, %r2, %r3;"},
    {"add.f16x2", "add.f16x2 %r0, %r1, %r2;"},
    {"fma.f16x2", "fma.rn.f16x2 %r0, %r1, %r2, %r3;"},
    {"max.bf16x2", "max.bf16x2 %r0, %r1, %r2;"},
    {"div.u32", "div.u32 %r0, %r1, 12;"},
    {"rem.u32", "rem.u32 %r0, %r1, %r2;"},
    {"div.u64", "div.u64 %rd0, %rd1, %rd2;"},
    {"lop3.b32", "lop3.b32 %r0, %r1, %r2, %r3, 0x96;"},
    {"prmt.b32", "prmt.b32 %r0, %r1, %r2, 0x5410;"},
    {"bfi.b64", "bfi.b64 %rd0, %rd1, %rd2, 32, 32;"},
    {"popc.b32", "popc.b32 %r0, %r1;"},
    {"ex2.approx.f32", "ex2.approx.f32 %f0, %f1;"},
    {"div.rn.f32", "div.rn.f32 %f0, %f1, %f2;"},
};

void register_cases() {
  constexpr const char* kForms[] = {"uniform", "affine", "vector"};
  for (const Case& item : kCases) {
    for (Form form : {kUniform, kAffine, kVector}) {
      for (bool full : {true, false}) {
        std::string name = std::string(item.name) + "/" + kForms[form] + (full ? "" : "/partial");
        benchmark::RegisterBenchmark(name.c_str(), [item, form, full](benchmark::State& state) {
          run_form(state, item.text, form, full);
        });
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
