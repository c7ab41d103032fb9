#include "simulator/ptx/fatbin.h"

#include <cstring>

#include "simulator/ptx/cubin.h"
#include "simulator/ptx/mutation.h"
#include "simulator/ptx/test_text.h"

namespace cb::ptx {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using EntryKind = FatbinEntry::Kind;

// Offsets in testdata/resources.fatbin: the container, then its first entry.
constexpr size_t kPayloadBytes = 8;
constexpr size_t kFirstEntry = 16;
constexpr size_t kEntryHeaderBytes = kFirstEntry + 4;
constexpr size_t kEntryBytes = kFirstEntry + 8;
constexpr size_t kCompressedBytes = kFirstEntry + 16;
constexpr size_t kNameBytes = kFirstEntry + 36;
constexpr size_t kFlags = kFirstEntry + 40;
constexpr size_t kUncompressedBytes = kFirstEntry + 56;

Result<Fatbin> read(const std::string& bytes, size_t max_bytes = size_t{64} << 20) {
  return read_fatbin(std::as_bytes(std::span(bytes)), max_bytes);
}

std::string fatbin_error(const std::string& bytes, size_t max_bytes = size_t{64} << 20) {
  Result<Fatbin> fatbin = read(bytes, max_bytes);
  return fatbin ? "read without an error" : fatbin.error().message();
}

template <typename T>
std::string patched(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  return bytes;
}

Fatbin of(std::vector<FatbinEntry> entries) { return {std::move(entries)}; }

FatbinEntry entry(EntryKind kind, unsigned arch, char variant = ' ') {
  FatbinEntry one;
  one.kind = kind;
  one.arch = arch;
  one.variant = variant;
  return one;
}

TEST(Fatbin, HoldsPtxAndSass) {
  Result<Fatbin> fatbin = read(test_data("resources.fatbin"));
  ASSERT_TRUE(fatbin) << fatbin.error().message();
  ASSERT_EQ(fatbin->entries.size(), 3u);
  const FatbinEntry& ptx = fatbin->entries[0];
  EXPECT_EQ(ptx.describe(), "PTX for sm_90a");
  EXPECT_EQ(ptx.version_major, 9u);
  EXPECT_EQ(ptx.version_minor, 0u);
  Result<Module> module = parse(ptx.content);
  ASSERT_TRUE(module) << module.error().message();
  EXPECT_EQ(module->target, "sm_90a");
  EXPECT_NE(module->find_function("_Z5plainPf"), nullptr);
  EXPECT_EQ(fatbin->entries[1].describe(), "SASS for sm_90a");
  EXPECT_THAT(fatbin->entries[1].content, StartsWith("\x7f"
                                                     "ELF"));
  EXPECT_EQ(fatbin->entries[2].describe(), "PTX for sm_80");
}

TEST(Fatbin, MayBeSeveralContainersWithPadding) {
  std::string one = test_data("resources.fatbin");
  Result<Fatbin> fatbin = read(one + std::string(5, '\0') + one + std::string(3, '\0'));
  ASSERT_TRUE(fatbin) << fatbin.error().message();
  EXPECT_EQ(fatbin->entries.size(), 6u);
  EXPECT_THAT(fatbin_error(one + "x"), HasSubstr("no container at byte"));
  EXPECT_THAT(fatbin_error(""), HasSubstr("no container at byte 0"));
}

TEST(Fatbin, RefusesOtherCompressionByName) {
  std::string bytes = test_data("resources.fatbin");
  EXPECT_THAT(fatbin_error(patched<uint64_t>(bytes, kFlags, 0x102011)),
              HasSubstr("entry 0 (PTX for sm_90a) is compressed with LZ4"));
  EXPECT_THAT(fatbin_error(patched<uint64_t>(bytes, kFlags, 0x100011)),
              HasSubstr("compressed in an unknown way (flags 0x100011)"));
}

TEST(Fatbin, BoundsDecompression) {
  std::string bytes = test_data("resources.fatbin");
  EXPECT_THAT(fatbin_error(bytes, 10000), HasSubstr("more than the 10000 left of the limit"));
  EXPECT_THAT(fatbin_error(patched<uint64_t>(bytes, kUncompressedBytes, uint64_t{1} << 60)),
              HasSubstr("left of the limit"));
  EXPECT_THAT(fatbin_error(patched<uint64_t>(bytes, kUncompressedBytes, 100)), HasSubstr("zstd: "));
  EXPECT_THAT(fatbin_error(patched<uint64_t>(bytes, kUncompressedBytes, 1 << 20)),
              HasSubstr("its header says 1048576"));
}

TEST(Fatbin, ChecksEveryOffset) {
  std::string bytes = test_data("resources.fatbin");
  EXPECT_THAT(fatbin_error(patched<uint64_t>(bytes, kPayloadBytes, ~uint64_t{0})),
              HasSubstr("end after"));
  EXPECT_THAT(fatbin_error(patched<uint32_t>(bytes, kEntryHeaderBytes, 8)),
              HasSubstr("entry 0 is cut off"));
  EXPECT_THAT(fatbin_error(patched<uint32_t>(bytes, kEntryHeaderBytes, 0xffffffff)),
              HasSubstr("do not fit in the container"));
  EXPECT_THAT(fatbin_error(patched<uint64_t>(bytes, kEntryBytes, ~uint64_t{0})),
              HasSubstr("do not fit in the container"));
  EXPECT_THAT(fatbin_error(patched<uint32_t>(bytes, kCompressedBytes, 0xffffffff)),
              HasSubstr("compressed bytes in a payload of"));
  EXPECT_THAT(fatbin_error(patched<uint32_t>(bytes, kNameBytes, 0xffffffff)),
              HasSubstr("its source name lies outside its header"));
  for (size_t length = 0; length < bytes.size(); length += 13) {
    EXPECT_FALSE(read(bytes.substr(0, length))) << length;
  }
}

TEST(SelectPtx, PrefersTheHighestThatFits) {
  Fatbin fatbin = of({entry(EntryKind::kPtx, 80), entry(EntryKind::kCubin, 90),
                      entry(EntryKind::kPtx, 90), entry(EntryKind::kPtx, 100)});
  auto arch = [&](unsigned device) { return (*select_ptx(fatbin, device))->arch; };
  EXPECT_EQ(arch(80), 80u);
  EXPECT_EQ(arch(89), 80u);
  EXPECT_EQ(arch(90), 90u);
  EXPECT_EQ(arch(120), 100u);
}

TEST(SelectPtx, TakesAVariantOnlyWhereItRuns) {
  Fatbin specific = of({entry(EntryKind::kPtx, 80), entry(EntryKind::kPtx, 90, 'a')});
  EXPECT_EQ((*select_ptx(specific, 90))->variant, 'a');
  EXPECT_EQ((*select_ptx(specific, 100))->arch, 80u);
  Fatbin both = of({entry(EntryKind::kPtx, 90, 'a'), entry(EntryKind::kPtx, 90)});
  EXPECT_EQ((*select_ptx(both, 90))->variant, 'a');
  Fatbin family = of({entry(EntryKind::kPtx, 80), entry(EntryKind::kPtx, 100, 'f')});
  EXPECT_EQ((*select_ptx(family, 103))->arch, 100u);
  EXPECT_EQ((*select_ptx(family, 120))->arch, 80u);
}

TEST(SelectPtx, SaysWhatIsThere) {
  auto error = [](const Fatbin& fatbin) { return select_ptx(fatbin, 90).error().message(); };
  EXPECT_THAT(error(of({entry(EntryKind::kCubin, 90, 'a'), entry(EntryKind::kCubin, 80)})),
              HasSubstr("SASS only, no PTX for a device of sm_90: it holds SASS for sm_90a, SASS "
                        "for sm_80. Build with nvcc -gencode"));
  EXPECT_THAT(error(of({entry(EntryKind::kPtx, 100)})),
              HasSubstr("no PTX that fits a device of sm_90: it holds PTX for sm_100"));
  EXPECT_THAT(error(of({})), HasSubstr("it holds nothing"));
}

TEST(SelectCubin, NeedsTheSameMajorNumber) {
  Fatbin fatbin = of({entry(EntryKind::kCubin, 80), entry(EntryKind::kCubin, 86),
                      entry(EntryKind::kPtx, 90), entry(EntryKind::kCubin, 100, 'a')});
  EXPECT_EQ((*select_cubin(fatbin, 89))->arch, 86u);
  EXPECT_EQ((*select_cubin(fatbin, 80))->arch, 80u);
  EXPECT_EQ((*select_cubin(fatbin, 100))->arch, 100u);
  EXPECT_FALSE(select_cubin(fatbin, 103));
  EXPECT_THAT(select_cubin(fatbin, 90).error().message(), HasSubstr("no SASS that fits"));
}

TEST(Mutation, DamagedFatbinsGiveEntriesOrAnError) {
  std::string bytes = test_data("resources.fatbin");
  const std::vector<std::string> tokens = {std::string(8, '\0'), std::string(8, '\xff'),
                                           std::string("\x50\xed\x55\xba", 4)};
  Mutator headers(1, tokens);
  for (int i = 0; i < 3000; ++i) {
    // Most damage to the compressed bytes ends in the decompressor, so the headers get their own.
    std::string damaged = headers.mutate(bytes.substr(0, 160)) + bytes.substr(160);
    Result<Fatbin> fatbin = read(damaged);
    if (!fatbin) {
      ASSERT_THAT(fatbin.error().message(), StartsWith("fatbin: "));
    }
  }
  Mutator anywhere(2, tokens);
  for (int i = 0; i < 1000; ++i) read(anywhere.mutate(bytes));
}

}  // namespace
}  // namespace cb::ptx
