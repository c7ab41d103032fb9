#include "simulator/daemon/module_cache.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "base/hash.h"
#include "simulator/daemon/cuda_error.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

void append(std::string& bytes, const void* data, size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

/// A fatbin with one piece of PTX, uncompressed.
std::string fatbin(const std::string& body, uint16_t version = 9, uint32_t arch = 80) {
  std::string text = ".version " + std::to_string(version) + ".0\n.target sm_" +
                     std::to_string(arch) + "\n.address_size 64\n" + body;
  text.resize((text.size() / 8 + 1) * 8, '\0');
  struct {
    uint16_t kind = 1, version = 0x0101;
    uint32_t header_bytes = 64;
    uint64_t payload_bytes = 0;
    uint32_t compressed_bytes = 0, options_offset = 0x40;
    uint16_t ptx_minor = 0, ptx_major = 0;
    uint32_t arch = 0, name_offset = 0, name_bytes = 0;
    uint64_t flags = 0x11, reserved = 0, uncompressed_bytes = 0;
  } entry;
  static_assert(sizeof entry == 64);
  entry.payload_bytes = text.size();
  entry.ptx_major = version;
  entry.arch = arch;
  uint64_t header[2] = {0xba55ed50 | uint64_t{1} << 32 | uint64_t{16} << 48, 64 + text.size()};
  std::string bytes;
  append(bytes, header, sizeof header);
  append(bytes, &entry, sizeof entry);
  return bytes + text;
}

std::string linked(const std::vector<std::string>& fatbins, uint32_t flags = 0) {
  LinkedImage header;
  header.magic = kLinkedImageMagic;
  header.count = static_cast<uint32_t>(fatbins.size());
  header.flags = flags;
  std::string sizes, content;
  for (const std::string& one : fatbins) {
    uint64_t bytes = one.size();
    append(sizes, &bytes, sizeof bytes);
    content += one;
  }
  header.bytes = sizeof header + sizes.size() + content.size();
  std::string image;
  append(image, &header, sizeof header);
  return image + sizes + content;
}

using Hashes = std::vector<std::string>;

class ModuleCacheTest : public ::testing::Test {
 protected:
  std::shared_ptr<SharedModule> load(const std::string& image, uint32_t max_registers = 0) {
    fault_ = {};
    return cache_.load(std::as_bytes(std::span(image)), max_registers, fault_);
  }
  int error_of(const std::string& image) {
    EXPECT_EQ(load(image), nullptr);
    return fault_.error;
  }

  Profile profile_ = value_or_throw(load_profile("h100x8"));
  ModuleCache cache_{profile_, std::nullopt};
  ImageFault fault_;
};

const std::string kCaller = ".extern .func f();\n.visible .entry k() { call f; ret; }\n";
const std::string kCallee = ".visible .func f() { ret; }\n";

TEST_F(ModuleCacheTest, EachKindOfBadImageHasItsError) {
  EXPECT_EQ(error_of("nothing of the kind"), kCudaInvalidKernelImage);
  EXPECT_EQ(error_of(fatbin(".entry k() { bra nowhere; }")), kCudaInvalidPtx);
  EXPECT_THAT(fault_.message, HasSubstr("ptx:4"));
  EXPECT_EQ(error_of(fatbin("", 42)), kCudaUnsupportedPtxVersion);
  EXPECT_EQ(error_of(fatbin("", 9, 100)), kCudaNoKernelImageForDevice);
  EXPECT_EQ(error_of(fatbin(kCaller)), kCudaInvalidPtx);
  EXPECT_THAT(fault_.message, HasSubstr("\"f\" is not defined"));
}

TEST_F(ModuleCacheTest, LinkedFatbinsAreOneModule) {
  auto module = load(linked({fatbin(kCaller), fatbin(kCallee)}));
  ASSERT_NE(module, nullptr) << fault_.message;
  EXPECT_EQ(module->kernel_names, std::vector<std::string>{"k"});
  EXPECT_TRUE(module->program(0, cache_.stalls()));
  EXPECT_EQ(error_of(linked({fatbin(kCallee), fatbin(kCallee)})), kCudaUnknown);
  EXPECT_EQ(error_of(linked({fatbin(kCaller)})), kCudaUnknown);
  EXPECT_NE(load(linked({fatbin(kCaller)}, kLinkIncomplete)), nullptr);
}

TEST_F(ModuleCacheTest, ForeignFatbinsMayBeLeftOut) {
  std::vector<std::string> fatbins = {fatbin(kCaller), fatbin("", 9, 100), fatbin(kCallee)};
  EXPECT_EQ(error_of(linked(fatbins)), kCudaNoKernelImageForDevice);
  EXPECT_NE(load(linked(fatbins, kLinkSkipForeign)), nullptr);
  EXPECT_EQ(error_of(linked({fatbin("", 9, 100)}, kLinkSkipForeign)), kCudaNoKernelImageForDevice);
}

TEST_F(ModuleCacheTest, RegistersCanBeLimited) {
  std::string image = fatbin(".visible .entry k() { ret; }");
  uint32_t usual = load(image)->kernels.at(0).registers;
  EXPECT_GT(usual, 20u);
  EXPECT_EQ(load(image, 20)->kernels.at(0).registers, 20u);
  EXPECT_EQ(load(image, 255)->kernels.at(0).registers, usual);
  EXPECT_EQ(load(image)->kernels.at(0).registers, usual);
}

TEST_F(ModuleCacheTest, OnlyAllowedFatbinsAreLinked) {
  std::string caller = fatbin(kCaller), callee = fatbin(kCallee);
  ModuleCache strict(profile_, Hashes{sha256_hex(caller)});
  ImageFault fault;
  std::string image = linked({caller, callee});
  EXPECT_EQ(strict.load(std::as_bytes(std::span(image)), 0, fault), nullptr);
  EXPECT_EQ(fault.error, kCudaNotPermitted);
  ModuleCache allowing(profile_, Hashes{sha256_hex(caller), sha256_hex(callee)});
  EXPECT_NE(allowing.load(std::as_bytes(std::span(image)), 0, fault), nullptr);
  image = linked({});
  EXPECT_EQ(strict.load(std::as_bytes(std::span(image)), 0, fault), nullptr);
  ModuleCache closed(profile_, Hashes{});
  EXPECT_EQ(closed.load(std::as_bytes(std::span(caller)), 0, fault), nullptr);
  EXPECT_EQ(fault.error, kCudaNotPermitted);
}

TEST_F(ModuleCacheTest, DamagedLinkedImagesAreRefused) {
  const std::string good = linked({fatbin(kCaller), fatbin(kCallee)});
  for (size_t length = 0; length < good.size(); length += 7) {
    EXPECT_EQ(load(good.substr(0, length)), nullptr) << length;
  }
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string image = good;
    size_t in_header = sizeof(LinkedImage) + 16 + 80;
    for (int change = 0; change < 3; ++change) {
      image[random() % in_header] = static_cast<char>(random());
    }
    auto module = load(image);  // whatever it is, it is no crash
    EXPECT_EQ(module == nullptr, fault_.error != 0);
  }
}

}  // namespace
}  // namespace cb::sim
