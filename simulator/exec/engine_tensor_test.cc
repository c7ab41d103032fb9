// Copies of boxes of tensors in whole kernels, in every mode. What a box is, tensor_tile_test.cc
// tests; here it meets memory, mbarriers and groups.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "simulator/exec/engine_rig.h"
#include "simulator/protocol/tensor_map.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

class EngineTensor : public ::testing::TestWithParam<EngineRig::Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineTensor, ::testing::ValuesIn(EngineRig::all_modes()));

/// %rd1 out, %rd2 the map, %rd3 b; %r1 the thread, %r2 the barrier, %r3 the tile, %rd0 out + 4 *
/// thread, %r4 the tile + 4 * thread. %p1: the first thread.
std::string kernel(const std::string& body) {
  return R"(.shared .align 1024 .b8 tile[8192];
.shared .align 8 .b8 bar[64];
.visible .entry k(.param .u64 out, .param .u64 map, .param .u64 b)
{
  .reg .pred %p<10>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [map]; ld.param.u64 %rd3, [b];
  mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, tile;
  mul.wide.u32 %rd4, %r1, 4; add.s64 %rd0, %rd1, %rd4;
  shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  bar.sync 0;
)" + body +
         "\nend:\n  ret;\n}\n";
}

/// The first thread starts `copy`; all wait for it, and store the tile to out.
std::string load(int bytes, const std::string& copy) {
  return "  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " + std::to_string(bytes) +
         ";\n  @%p1 " + copy + R"(
w: mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r2], 0;
  @!%p9 bra w;
  ld.shared.u32 %r9, [%r4]; st.global.u32 [%rd0], %r9;)";
}

constexpr char kLoad[] =
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
    ".mbarrier::complete_tx::bytes [%r3], [%rd2, {%r5, %r6}], [%r2];";

/// A map of 32-bit elements, `width` x `height` with rows of `pitch` elements.
TensorMap map_of(const void* tensor, uint32_t width, uint32_t height, uint32_t pitch) {
  TensorMap map = {};
  map.magic = TensorMap::kMagic;
  map.type = TensorType::kU32;
  map.rank = 2;
  map.address = address_of(tensor);
  map.last[0] = width - 1;
  map.last[1] = height - 1;
  map.strides[0] = uint64_t{pitch} * 4;
  map.box[0] = map.box[1] = 8;
  map.element_strides[0] = map.element_strides[1] = 1;
  return map;
}

struct Tensor {
  explicit Tensor(EngineRig& rig)
      : data(rig.buffer<uint32_t>(1, 12 * 20)),
        map(rig.buffer<TensorMap>(0, 1)),
        out(rig.buffer<uint32_t>(0, 256)) {
    for (uint32_t i = 0; i < 12 * 20; ++i) data[i] = 1000 + i;
    *map = map_of(data, 10, 20, 12);
  }
  std::vector<uint64_t> parameters() const { return {address_of(out), address_of(map), 0}; }
  uint32_t at(int x, int y) const {
    return x < 0 || x >= 10 || y < 0 || y >= 20 ? 0 : data[y * 12 + x];
  }
  uint32_t* data;
  TensorMap* map;
  uint32_t* out;
};

const Finding& only_finding(EngineRig& rig) {
  static const Finding none;
  EXPECT_EQ(rig.engine().findings().size(), 1u);
  return rig.engine().findings().empty() ? none : rig.engine().findings()[0];
}

TEST_P(EngineTensor, ABoxIsLoadedWithZerosOutsideTheTensor) {
  EngineRig rig(kernel("mov.s32 %r5, -2; mov.s32 %r6, 15;\n" + load(256, kLoad)), GetParam());
  Tensor tensor(rig);
  rig.launch("k", 0, {.threads = 64}, tensor.parameters());
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_TRUE(rig.engine().findings().empty());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(tensor.out[i], tensor.at(i % 8 - 2, i / 8 + 15)) << i;
}

TEST_P(EngineTensor, ASwizzledLoadIsWhereTheXorOfTheAddressSays) {
  EngineRig rig(kernel("mov.s32 %r5, 4; mov.s32 %r6, 1;\n" + load(512, kLoad)), GetParam());
  Tensor tensor(rig);
  tensor.map->box[1] = 16;
  tensor.map->swizzle = TensorSwizzle::k32B;
  rig.launch("k", 0, {.threads = 128}, tensor.parameters());
  rig.run();
  for (int i = 0; i < 128; ++i) {
    int place = i ^ (i / 32 % 2) * 4;
    EXPECT_EQ(tensor.out[place], tensor.at(i % 8 + 4, i / 8 + 1)) << i;
  }
}

TEST_P(EngineTensor, AnIm2colLoadAppliesItsOffsets) {
  const std::string copy =
      "cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes"
      " [%r3], [%rd2, {%r5, %r6, %r7, %r8}], [%r2], {%h1, %h2};";
  EngineRig rig(kernel("mov.s32 %r5, 0; mov.s32 %r6, -1; mov.s32 %r7, -1; mov.s32 %r8, 0;"
                       "mov.u16 %h1, 2; mov.u16 %h2, 1;\n" +
                       load(256, copy)),
                GetParam());
  Tensor tensor(rig);
  TensorMap& map = *tensor.map;
  map.mode = TensorMode::kIm2col;
  map.rank = 4;  // 4 channels, 3 x 3 pixels, 4 of them
  uint32_t last[] = {3, 2, 2, 3};
  std::copy(std::begin(last), std::end(last), map.last);
  map.strides[0] = 16;
  map.strides[1] = 48;
  map.strides[2] = 144;
  map.element_strides[2] = map.element_strides[3] = 1;
  map.box[0] = 4;
  map.box[1] = 16;
  map.box_lower[0] = map.box_lower[1] = -1;
  map.box_upper[0] = map.box_upper[1] = -1;  // as a filter of 3 x 3 with a border of 1
  rig.launch("k", 0, {.threads = 64}, tensor.parameters());
  rig.run();
  EXPECT_TRUE(rig.engine().findings().empty());
  for (int i = 0; i < 64; ++i) {
    int channel = i % 4, pixel = i / 4, n = pixel / 9;
    int w = pixel % 3 - 1 + 2, h = pixel / 3 % 3 - 1 + 1;
    bool inside = w >= 0 && w < 3 && h >= 0 && h < 3;
    EXPECT_EQ(tensor.out[i], inside ? tensor.data[n * 36 + h * 12 + w * 4 + channel] : 0) << i;
  }
}

TEST_P(EngineTensor, StoresAndReductionsLeaveWhatIsOutsideAlone) {
  for (bool reduces : {false, true}) {
    std::string copy = reduces ? "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile"
                               : "cp.async.bulk.tensor.2d.global.shared::cta.tile";
    EngineRig rig(kernel(R"(
  st.shared.u32 [%r4], %r1;
  fence.proxy.async.shared::cta; bar.sync 0;
  mov.s32 %r5, 6; mov.s32 %r6, -3;
  @!%p1 bra end;
  )" + copy + R"(.bulk_group [%rd2, {%r5, %r6}], [%r3];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;)"),
                  GetParam());
    Tensor tensor(rig);
    rig.launch("k", 0, {.threads = 64}, tensor.parameters());
    rig.run();
    EXPECT_EQ(rig.running(), 0);
    EXPECT_TRUE(rig.engine().findings().empty());
    for (int i = 0; i < 240; ++i) {
      int x = i % 12 - 6, y = i / 12 + 3;
      bool written = x >= 0 && x < 4 && y < 8;
      int old = 1000 + i;
      int expected = !written ? old : y * 8 + x + (reduces ? old : 0);
      EXPECT_EQ(tensor.data[i], static_cast<uint32_t>(expected)) << i;
    }
  }
}

TEST_P(EngineTensor, AReplacedMapIsUsedAfterItWasPublished) {
  EngineRig rig(kernel(R"(
  shl.b32 %r10, %r1, 2; add.u32 %r11, %r3, 4096; add.u32 %r11, %r11, %r10;
  cvt.u64.u32 %rd5, %r10; add.u64 %rd6, %rd2, %rd5;
  ld.global.u32 %r12, [%rd6]; st.shared.u32 [%r11], %r12;
  bar.sync 0;
  add.u32 %r13, %r3, 4096;
  cvt.u64.u32 %rd7, %r13;
  @!%p1 bra publish;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd7], %rd3;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd7], 1, 6;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd7], 0, 64;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd7], 1, 4;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%rd7], 0;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%rd7], 7;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%rd7], 1;
publish:
  bar.warp.sync 0xffffffff;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
      [%rd2], [%rd7], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;
  mov.s32 %r5, 0; mov.s32 %r6, 4;
)" + load(128, kLoad)),
                GetParam());
  Tensor tensor(rig);
  auto* other = rig.buffer<float>(0, 96);
  for (int i = 0; i < 96; ++i) other[i] = static_cast<float>(i);
  rig.launch("k", 0, {}, {address_of(tensor.out), address_of(tensor.map), address_of(other)});
  rig.run();
  EXPECT_TRUE(rig.engine().findings().empty());
  auto* out = reinterpret_cast<float*>(tensor.out);
  for (int i = 0; i < 32; ++i) {
    if (i < 16) {
      EXPECT_EQ(out[i], other[(i / 8 + 4) * 16 + i % 8]);
    } else {
      EXPECT_TRUE(std::isnan(out[i])) << i;
    }
  }
}

TEST_P(EngineTensor, WhatIsWrongWithACopyIsNamed) {
  struct Case {
    std::function<void(TensorMap&)> change;
    std::string body;
    Finding::Kind kind;
    std::string text;
  };
  const auto nothing = [](TensorMap&) {};
  const std::string at = "mov.s32 %r5, 0; mov.s32 %r6, 0;\n";
  const auto illegal = Finding::Kind::kIllegalInstruction;
  const Case cases[] = {
      {[](TensorMap& map) { map.magic = 0; }, at + kLoad, illegal, "was not encoded"},
      {[](TensorMap& map) {
         map.rank = 3;
         map.box[2] = map.element_strides[2] = 1;
       },
       at + kLoad, illegal, "has rank 3, the instruction 2"},
      {[](TensorMap& map) { map.box[0] = 3; }, at + kLoad, illegal, "multiple of 16 bytes"},
      {[](TensorMap& map) {
         map.interleave = 1;
         map.rank = 3;
         map.box[2] = 1;
         map.element_strides[2] = 1;
       },
       at + kLoad, Finding::Kind::kUnsupported, "not supported"},
      {[](TensorMap& map) { map.swizzle = TensorSwizzle::k128BAtom64B; }, at + kLoad, illegal,
       "needs sm_100"},
      {[](TensorMap& map) { map.last[1] = 40; },
       "mov.s32 %r5, 0; mov.s32 %r6, 20;\n" + std::string(kLoad), Finding::Kind::kOutOfBounds,
       "an element of the tensor"},
      {[](TensorMap& map) { map.box[0] = map.box[1] = 64; }, at + kLoad,
       Finding::Kind::kOutOfBounds, "the destination (16384 bytes"},
      {nothing, at + "add.u32 %r3, %r3, 64;\n" + kLoad, Finding::Kind::kMisaligned,
       "not a multiple of 128"},
      {nothing, at + "add.u64 %rd2, %rd2, 16;\n" + kLoad, Finding::Kind::kMisaligned,
       "the tensor map"},
      {nothing, "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd2], 0, 257;", illegal,
       "257 where at most 256"},
      {[](TensorMap& map) { map.type = TensorType::kF32; },
       at + "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group [%rd2, {%r5, %r6}],"
            " [%r3];",
       illegal, "have no .xor"},
  };
  for (const Case& one : cases) {
    EngineRig rig(kernel(one.body), GetParam());
    Tensor tensor(rig);
    one.change(*tensor.map);
    rig.launch("k", 0, {.threads = 1}, tensor.parameters());
    rig.run();
    EXPECT_EQ(only_finding(rig).kind, one.kind) << one.text;
    EXPECT_THAT(only_finding(rig).detail, HasSubstr(one.text));
  }
}

TEST_P(EngineTensor, MapsMayBeParametersAndPrefetched) {
  std::string text = kernel(
      "mov.s32 %r5, 1; mov.s32 %r6, 2;"
      "mov.b64 %rd8, map; cvta.param.u64 %rd2, %rd8;"
      "prefetch.tensormap [%rd2]; prefetch.param.tensormap [map];"
      "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {%r5, %r6}];\n" +
      load(256, kLoad));
  auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace(".param .u64 map", ".param .align 64 .b8 map[128]");
  replace(".param .u64 out", ".param .align 64 .u64 out");
  replace("ld.param.u64 %rd2, [map];", "");
  EngineRig rig(text, GetParam());
  Tensor tensor(rig);
  // out, seven words of padding, the map's sixteen words, b.
  std::vector<uint64_t> parameters(25);
  parameters[0] = address_of(tensor.out);
  std::memcpy(&parameters[8], tensor.map, sizeof(TensorMap));
  rig.launch("k", 0, {.threads = 64}, parameters);
  rig.run();
  EXPECT_TRUE(rig.engine().findings().empty());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(tensor.out[i], tensor.at(i % 8 + 1, i / 8 + 2)) << i;
}

}  // namespace
}  // namespace cb::sim
