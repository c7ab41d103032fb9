// What one host process sees, and what it cannot do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "simulator/daemon/cuda_error.h"
#include "simulator/daemon/testing/daemon_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

/// Adds a 32-bit number to each of a block's words, and a kernel that no simulator has.
constexpr char kAddPtx[] = R"(
.visible .global .align 4 .u32 counter = 40;
.visible .entry add(.param .u64 memory, .param .u64 amount) {
  .reg .b32 %r<4>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [memory];
  ld.param.u64 %rd2, [amount];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r2, [%rd4];
  cvt.u32.u64 %r3, %rd2;
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd4], %r2;
  ret;
}
.visible .entry no_such_thing() {
  .reg .b32 %r<2>;
  bogus.instruction.u32 %r1, %r1;
  ret;
}
)";

class DaemonHost : public ::testing::Test {
 protected:
  DaemonHost() : rig_({.world_size = 1}) { rig_.connect_hosts(); }
  RawHost& host() { return rig_.host(0); }
  std::string findings() { return dump_json(rig_.rank(0).report()["findings"]); }
  void expect_gone() {
    EXPECT_EQ(host().await().status, -1);
    std::optional<HostEvent> event = rig_.rank(0).wait(5000);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, HostEvent::Kind::kGone);
  }
  DaemonRig rig_;
};

std::string words(std::initializer_list<uint32_t> values) {
  std::string bytes;
  for (uint32_t value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

TEST_F(DaemonHost, IsGreetedWithItsPlaceAndTheDevicesOfItsNode) {
  EXPECT_EQ(host().greeting.rank, 0);
  EXPECT_EQ(host().greeting.world_size, 1);
  EXPECT_EQ(host().greeting.num_devices, 8u);
}

TEST_F(DaemonHost, CopiesThereAndBack) {
  uint64_t address = host().malloc(1000);
  ASSERT_NE(address, 0u);
  std::string text(1000, 'x');
  host().write(address, text);
  EXPECT_EQ(host().call(Op::kMemset, {address + 10, 'y', 1, 5, 1, 0, 0, 0}).status, 0);
  text.replace(10, 5, "yyyyy");
  EXPECT_EQ(host().read(address, 1000), text);
  EXPECT_EQ(host().call(Op::kFree, {address}).status, 0);
  EXPECT_EQ(host().call(Op::kFree, {address}).status, kCudaInvalidValue);
}

TEST_F(DaemonHost, RowsAreCopiedPacked) {
  uint64_t address = host().malloc(64);
  host().write(address, std::string(64, '.'));
  std::memcpy(host().staging(), "abcdef", 6);
  Copy2D copy{.dst = address, .dst_pitch = 8, .width_bytes = 2, .height = 3};
  std::string payload(reinterpret_cast<char*>(&copy), sizeof copy);
  EXPECT_EQ(host().call(Op::kMemcpy2D, {}, kCopySrcPageable, payload).status, 0);
  EXPECT_EQ(host().read(address, 20), "ab......cd......ef..");
}

TEST_F(DaemonHost, RunsKernelsAndSeesVariables) {
  uint32_t module = host().load_module(fatbin_of(kAddPtx));
  uint64_t memory = host().malloc(8);
  host().write(memory, words({1, 2}));
  uint64_t before_ns = host().now_ns();
  host().launch(module, 0, 1, 2, {memory, 10});
  EXPECT_EQ(host().call(Op::kDeviceSync, {0}).status, 0);
  EXPECT_GT(host().now_ns(), before_ns + 2500);
  EXPECT_EQ(host().read(memory, 8), words({11, 12}));
  Reply symbol = host().call(Op::kSymbolAddress, {module, 0, 0});
  EXPECT_EQ(symbol.results[1], 4u);
  host().launch(module, 0, 1, 1, {symbol.results[0], 2});
  EXPECT_EQ(host().read(symbol.results[0], 4), words({42}));
}

TEST_F(DaemonHost, AnUnknownInstructionIsRefusedByNameAndBreaksTheContext) {
  uint32_t module = host().load_module(fatbin_of(kAddPtx));
  host().launch(module, 1, 1, 1, {});
  EXPECT_EQ(host().call(Op::kDeviceSync, {0}).status, kCudaNotSupported);
  EXPECT_EQ(host().call(Op::kMalloc, {8, 0}).status, kCudaNotSupported);
  EXPECT_EQ(host().call(Op::kMalloc, {8, 1}).status, kCudaSuccess) << "another device is fine";
  EXPECT_THAT(findings(), HasSubstr("bogus.instruction"));
}

TEST_F(DaemonHost, AKernelThatGoesAstrayIsAFinding) {
  uint32_t module = host().load_module(fatbin_of(kAddPtx));
  uint64_t memory = host().malloc(64);
  host().launch(module, 0, 1, 32, {memory, 1});
  EXPECT_EQ(host().call(Op::kStreamSync, {kNullStream, 0}).status, kCudaIllegalAddress);
  std::optional<HostEvent> event = rig_.rank(0).wait(5000);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, HostEvent::Kind::kFinding);
  EXPECT_THAT(findings(), HasSubstr("out_of_bounds"));
}

TEST_F(DaemonHost, AnswersErrorsOfCallsWithoutBreakingAnything) {
  EXPECT_EQ(host().call(Op::kMalloc, {uint64_t{1} << 60, 0}).status, kCudaMemoryAllocation);
  EXPECT_EQ(host().call(Op::kMalloc, {8, 8}).status, kCudaInvalidDevice);
  EXPECT_EQ(host().call(Op::kStreamSync, {77, 0}).status, kCudaInvalidResourceHandle);
  EXPECT_EQ(host().call(Op::kMemcpy, {16, 32, 8, 0, 0}).status, kCudaInvalidValue);
  EXPECT_EQ(host().call(Op::kIpcOpenMem, {1, 2, 0}).status, kCudaInvalidValue);
  uint64_t memory = host().malloc(64);
  EXPECT_EQ(host().call(Op::kMemcpy, {memory + 60, memory, 8, 0, 0}).status, kCudaInvalidValue);
  EXPECT_EQ(host().call(Op::kDeviceSync, {0}).status, kCudaSuccess);
}

TEST_F(DaemonHost, SleepsEndAtTheirTimeOrWhenWoken) {
  uint64_t start = host().now_ns();
  EXPECT_EQ(host().call(Op::kSleep, {5000, 0}).results[0], 0u);
  EXPECT_GE(host().now_ns(), start + 5000);
  Reply made = host().call(Op::kThreadNew);
  ASSERT_EQ(host().fds().size(), 2u);
  RawHost second(std::move(host().fds()[0]), std::move(host().fds()[1]));
  host().post(Op::kSleep, {1000, 0});
  second.hello();
  second.post(Op::kSleep, {uint64_t{1} << 60, 1});
  EXPECT_EQ(host().await().status, 0);
  host().post(Op::kThreadWake, {made.results[0]});
  host().post(Op::kSleep, {1000, 0});
  EXPECT_EQ(second.await().results[0], 1u);
  second.post(Op::kBye, {0});
  EXPECT_EQ(host().await().status, 0);
  EXPECT_EQ(host().call(Op::kThreadJoin, {made.results[0]}).status, 0);
}

TEST_F(DaemonHost, PinnedMemoryComesAsADescriptor) {
  Reply made = host().call(Op::kHostAlloc, {100, 0, 0});
  ASSERT_EQ(made.status, 0);
  ASSERT_EQ(host().fds().size(), 1u);
  SharedMapping mapped(host().fds().front().get(), 4096);
  std::memcpy(mapped.data(), "pinned", 6);
  uint64_t device_memory = host().malloc(6);
  EXPECT_EQ(host().call(Op::kMemcpy, {device_memory, made.results[0], 6, 0, 0}).status, 0);
  EXPECT_EQ(host().read(device_memory, 6), "pinned");
  EXPECT_EQ(host().call(Op::kPointerInfo, {made.results[0] + 4}).results[0],
            static_cast<uint64_t>(PointerKind::kPinned));
  EXPECT_EQ(host().call(Op::kHostFree, {made.results[0]}).status, 0);
}

TEST_F(DaemonHost, EventsMeasureTimeInTheirStream) {
  host().post(Op::kEventCreate, {20, 0, 0});
  host().post(Op::kEventCreate, {21, 0, 0});
  host().post(Op::kStreamCreate, {22, 1, 0, 0});
  uint64_t memory = host().malloc(64 << 20);
  host().post(Op::kEventRecord, {20, 22, 0});
  host().post(Op::kMemset, {memory, 0, 1, 64 << 20, 1, 0, 22, 0}, kCopyAsync | kCopyOneWay);
  host().post(Op::kEventRecord, {21, 22, 0});
  EXPECT_EQ(host().call(Op::kEventQuery, {21}).status, kCudaNotReady);
  EXPECT_EQ(host().call(Op::kEventSync, {21}).status, 0);
  Reply elapsed = host().call(Op::kEventElapsed, {20, 21});
  EXPECT_GT(elapsed.results[0], 10'000'000u) << "64 MiB at 3 TB/s";
  EXPECT_LT(elapsed.results[0], 100'000'000u);
}

TEST_F(DaemonHost, MessagesOfImpossibleSizeEndTheProcess) {
  std::vector<std::byte> bytes(10);
  host().send_bytes(bytes);
  expect_gone();
}

TEST_F(DaemonHost, APayloadOfAnotherSizeEndsTheProcess) {
  Request request;
  request.op = Op::kTimeNow;
  request.payload_bytes = 5;
  host().send_bytes(std::as_bytes(std::span(&request, 1)));
  expect_gone();
}

TEST_F(DaemonHost, ASecondRequestBeforeTheReplyEndsTheProcess) {
  host().post(Op::kControlWait, {0});
  host().post(Op::kTimeNow);
  expect_gone();
}

TEST_F(DaemonHost, AnUnknownRequestEndsTheProcess) {
  host().post(static_cast<Op>(9999));
  expect_gone();
  EXPECT_THAT(dump_json(rig_.rank(0).report()), HasSubstr("no such request"));
}

TEST_F(DaemonHost, AClosedConnectionIsNoticedInTheMiddleOfACall) {
  host().post(Op::kSleep, {uint64_t{1} << 60, 1});
  host().close();
  std::optional<HostEvent> event = rig_.rank(0).wait(5000);
  ASSERT_TRUE(event);
}

TEST(Daemon, LoadsOnlyTheDeviceCodeItWasToldOf) {
  std::string allowed = fatbin_of(kAddPtx);
  std::string other = fatbin_of(std::string(kAddPtx) + "// other\n");
  DaemonRig rig({.world_size = 1, .fatbin_sha256 = {sha256_hex(allowed)}, .any_code = false});
  rig.connect_hosts();
  rig.host(0).load_module(allowed);
  std::memcpy(rig.host(0).staging(), other.data(), other.size());
  EXPECT_EQ(rig.host(0).call(Op::kModuleLoad, {other.size(), 0}).status, kCudaNotPermitted);
}

}  // namespace
}  // namespace cb::sim
