#include "simulator/shims/client/fatbin.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace cb::sim::client {
namespace {

std::string container(uint64_t payload_bytes, uint16_t version = 1, uint16_t header_bytes = 16) {
  FatbinHeader header = {kContainerMagic, version, header_bytes, payload_bytes};
  return std::string(reinterpret_cast<char*>(&header), sizeof header) + "payload";
}

TEST(Fatbin, SizeComesFromTheHeader) {
  std::string image = container(1234);
  const void* data = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(inspect_image(image.data(), &data, &bytes), ImageKind::kContainer);
  EXPECT_EQ(data, image.data());
  EXPECT_EQ(bytes, 16u + 1234u);
}

TEST(Fatbin, AHeaderThatCannotBeIsNoImage) {
  const void* data = nullptr;
  size_t bytes = 0;
  for (const std::string& image :
       {container(1, 2), container(1, 1, 8), container(kMaxFatbinBytes), container(~uint64_t{0})}) {
    EXPECT_EQ(inspect_image(image.data(), &data, &bytes), ImageKind::kUnknown);
  }
  EXPECT_EQ(inspect_image(nullptr, &data, &bytes), ImageKind::kUnknown);
  EXPECT_EQ(inspect_image("", &data, &bytes), ImageKind::kUnknown);
  EXPECT_EQ(inspect_image("abc", &data, &bytes), ImageKind::kUnknown);
}

TEST(Fatbin, JoinedContainersAreAnImageOfTheirOwn) {
  std::string one = container(7), two = container(7) + "more";
  Bytes inputs[] = {{one.data(), one.size()}, {two.data(), two.size()}};
  size_t image_bytes = 0;
  void* image = join_containers(inputs, 2, kLinkIncomplete, &image_bytes);
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image_bytes, sizeof(LinkedImage) + 2 * sizeof(uint64_t) + one.size() + two.size());
  const void* data = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(inspect_image(image, &data, &bytes), ImageKind::kLinked);
  EXPECT_EQ(data, image);
  EXPECT_EQ(bytes, image_bytes);
  static_cast<LinkedImage*>(image)->bytes = 4;
  EXPECT_EQ(inspect_image(image, &data, &bytes), ImageKind::kUnknown);
  static_cast<LinkedImage*>(image)->bytes = ~uint64_t{0};
  EXPECT_EQ(inspect_image(image, &data, &bytes), ImageKind::kUnknown);
  free(image);
  EXPECT_EQ(join_containers(inputs, size_t{kMaxLinkedFatbins} + 1, 0, &image_bytes), nullptr);
}

TEST(Fatbin, LooksThroughAWrapperOfVersionOneOnly) {
  std::string image = container(100);
  FatbinWrapper wrapper = {kWrapperMagic, 1, image.data(), nullptr};
  const void* data = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(inspect_image(&wrapper, &data, &bytes), ImageKind::kContainer);
  EXPECT_EQ(data, image.data());
  wrapper.version = 2;
  EXPECT_EQ(inspect_image(&wrapper, &data, &bytes), ImageKind::kUnknown);
  FatbinWrapper outer = {kWrapperMagic, 1, &wrapper, nullptr};
  EXPECT_EQ(inspect_image(&outer, &data, &bytes), ImageKind::kUnknown);
}

TEST(Fatbin, KnowsPtxBehindCommentsAndCubins) {
  const void* data = nullptr;
  size_t bytes = 0;
  const char ptx[] = "\n// a comment\n/* another\n */ .version 8.4\n.target sm_80\n";
  EXPECT_EQ(inspect_image(ptx, &data, &bytes), ImageKind::kPtxText);
  EXPECT_EQ(bytes, sizeof ptx);
  EXPECT_EQ(inspect_image("/* open", &data, &bytes), ImageKind::kUnknown);
  EXPECT_EQ(inspect_image("\x7f"
                          "ELF\2\1\1\x41\x08\0\0\0\0\0\0\0\2\0\xbe\0",
                          &data, &bytes),
            ImageKind::kCubin);
  EXPECT_EQ(inspect_image("\x7f"
                          "ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\x3e\0",
                          &data, &bytes),
            ImageKind::kUnknown);
}

TEST(Fatbin, WrappedPtxIsAContainerWithOneEntry) {
  const char ptx[] = ".version 8.4\n.target sm_90a\n.address_size 64\n";
  size_t bytes = 0;
  auto* image = static_cast<char*>(wrap_ptx(ptx, sizeof ptx, &bytes));
  ASSERT_NE(image, nullptr);
  const void* data = nullptr;
  size_t read_bytes = 0;
  EXPECT_EQ(inspect_image(image, &data, &read_bytes), ImageKind::kContainer);
  EXPECT_EQ(read_bytes, bytes);
  auto field = [&](size_t offset, auto value) {
    memcpy(&value, image + 16 + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(field(0, uint16_t{}), 1);  // PTX
  uint32_t header_bytes = field(4, uint32_t{});
  EXPECT_EQ(field(24, uint16_t{}), 4);  // PTX ISA minor
  EXPECT_EQ(field(26, uint16_t{}), 8);  // and major
  EXPECT_EQ(field(28, uint32_t{}), 90u);
  EXPECT_EQ(field(40, uint64_t{}), 0x100011u);  // "a" target, not compressed
  EXPECT_STREQ(image + 16 + header_bytes, ptx);
  EXPECT_EQ(16 + header_bytes + field(8, uint64_t{}), bytes);
  free(image);
}

}  // namespace
}  // namespace cb::sim::client
