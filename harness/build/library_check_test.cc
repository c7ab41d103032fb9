#include "harness/build/library_check.h"

#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "base/hash.h"

namespace cb::build {
namespace {

std::string fatbin(const std::string& body) {
  std::string bytes("\x50\xed\x55\xba\x01\x00\x10\x00", 8);
  for (int shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<char>(body.size() >> shift));
  }
  return bytes + body;
}

TEST(FatbinTest, ContainersAreHashedOneByOne) {
  std::string first = fatbin("abc");
  std::string second = fatbin("defg");
  Result<std::vector<std::string>> hashes = hash_fatbins(first + std::string(5, '\0') + second);
  ASSERT_TRUE(hashes);
  EXPECT_EQ(*hashes, (std::vector<std::string>{sha256_hex(first), sha256_hex(second)}));
}

TEST(FatbinTest, WhatIsNotAContainerIsAnError) {
  EXPECT_FALSE(hash_fatbins("x"));
  EXPECT_FALSE(hash_fatbins(fatbin("abc").substr(0, 17)));
  std::string huge = fatbin("abc");
  for (int index = 8; index < 16; ++index) huge[index] = '\xff';
  EXPECT_FALSE(hash_fatbins(huge));
  std::string no_header = fatbin("abc");
  no_header[6] = 0;
  EXPECT_FALSE(hash_fatbins(no_header));
}

TEST(LibraryTest, AnOrdinaryLibraryIsUnderstood) {
  Result<std::string> bytes = read_file("/usr/lib/x86_64-linux-gnu/libm.so.6");
  if (!bytes) GTEST_SKIP() << bytes.error().message();
  Result<LibraryFacts> facts = read_library(*bytes);
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_NE(std::find(facts->exported.begin(), facts->exported.end(), "cos"),
            facts->exported.end());
  EXPECT_FALSE(facts->undefined.empty());
  EXPECT_EQ(facts->stray_device_code, "");
}

// The reader runs on what a hostile compiler may have written; sanitizer builds make this count.
TEST(LibraryTest, DamagedLibrariesAreReadWithinTheirBounds) {
  Result<std::string> bytes = read_file("/usr/lib/x86_64-linux-gnu/libm.so.6");
  if (!bytes) GTEST_SKIP() << bytes.error().message();
  std::mt19937_64 random(7);
  size_t tables = bytes->size() - std::min<size_t>(bytes->size(), 4096);
  for (int round = 0; round < 200; ++round) {
    std::string damaged =
        bytes->substr(0, round % 4 == 0 ? random() % bytes->size() : bytes->size());
    for (int hit = 0; hit < 8 && !damaged.empty(); ++hit) {
      size_t at =
          hit % 2 == 0 ? random() % std::min<size_t>(64, damaged.size()) : tables + random() % 4096;
      if (at < damaged.size()) damaged[at] = static_cast<char>(random());
    }
    read_library(damaged);
  }
  EXPECT_FALSE(read_library(""));
  EXPECT_FALSE(
      read_library("\x7f"
                   "ELF"));
}

}  // namespace
}  // namespace cb::build
