// mma.sp and wgmma.mma_async.sp. A is made dense first; what is kept of it, and
// the metadata, follow from that as the figures of the PTX ISA show.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "simulator/exec/matrix_model.h"
#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

struct Form {
  std::string d, a, b;
  unsigned k;
  unsigned selectors;
};
const Form kForms[] = {
    {"f32", "f16", "f16", 16, 4},   {"f16", "f16", "f16", 16, 4},   {"f32", "bf16", "bf16", 16, 4},
    {"f32", "f16", "f16", 32, 2},   {"f16", "f16", "f16", 32, 2},   {"f32", "bf16", "bf16", 32, 2},
    {"f32", "tf32", "tf32", 8, 4},  {"f32", "tf32", "tf32", 16, 2}, {"s32", "s8", "u8", 32, 2},
    {"s32", "u8", "u8", 64, 1},     {"s32", "s4", "u4", 64, 2},     {"s32", "u4", "s4", 128, 1},
    {"f32", "e4m3", "e5m2", 64, 1},
};

/// 16 rows, of which half the elements are kept.
struct SparseMatrix {
  SparseMatrix(const Form& form, uint64_t seed) : k(form.k), dense(16 * k), kept(16 * k / 2) {
    std::mt19937_64 random(seed);
    unsigned bits = element_bits(form.a);
    // Whole groups are chosen from: two of four numbers, one of two .tf32, two
    // of four pairs.
    unsigned together = bits == 4 ? 2 : 1;
    unsigned of_group = bits == 32 ? 2 : 4;
    unsigned chosen = bits == 32 ? 1 : 2;
    for (unsigned row = 0; row < 16; ++row) {
      unsigned next = row * k / 2;
      for (unsigned group = 0; group < k / (of_group * together); ++group) {
        std::vector<unsigned> places = {0, 1, 2, 3};
        places.resize(of_group);
        std::shuffle(places.begin(), places.end(), random);
        places.resize(chosen);
        std::sort(places.begin(), places.end());
        for (unsigned place : places) {
          for (unsigned i = 0; i < together; ++i) {
            uint64_t number = small_number(form.a, random());
            kept[next++] = number;
            dense[row * k + (group * of_group + place) * together + i] = number;
          }
          if (bits == 32) {
            index[row].push_back(place == 0 ? 0 : 2);
            index[row].push_back(place == 0 ? 1 : 3);
          } else {
            index[row].push_back(place);
          }
        }
      }
    }
  }

  /// The metadata of all lanes: 2 bits for each index of a row, in the lanes
  /// that the selector names.
  LaneValues metadata(const Form& form, unsigned selector) const {
    LaneValues words;
    std::mt19937_64 random(1);
    for (auto& word : words.low) word = random() & 0xffffffff;
    bool halves = element_bits(form.a) >= 16;
    unsigned per_lane = halves ? 8 : 16;
    for (unsigned row = 0; row < 16; ++row) {
      for (unsigned first = 0; first < index[row].size(); first += per_lane) {
        uint64_t bits = 0;
        for (unsigned i = 0; i < per_lane; ++i) bits |= uint64_t{index[row][first + i]} << (2 * i);
        unsigned part = first / per_lane,
                 parts = static_cast<unsigned>(index[row].size()) / per_lane;
        unsigned lane = row % 8 * 4;
        uint64_t& word =
            words.low[halves ? lane + selector * parts + part
                             : lane + (parts == 2 ? part * 2 : selector * 2) + row / 8];
        if (!halves) {
          word = bits;
        } else if (row < 8) {
          word = (word & 0xffff0000) | bits;
        } else {
          word = (word & 0xffff) | bits << 16;
        }
      }
    }
    return words;
  }

  unsigned k;
  std::vector<uint64_t> dense, kept;
  std::vector<unsigned> index[16];
};

std::string list(unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{}%r{}", i == 0 ? "" : ", ", first + i);
  return text + "}";
}

/// Packs value(i) for the elements of one register.
template <typename Value>
uint64_t pack(const std::string& type, Value value) {
  unsigned bits = element_bits(type);
  uint64_t word = 0;
  for (unsigned i = 0; i < 32 / bits; ++i) word |= value(i) << (bits * i);
  return word;
}

void set_a(MemoryRig& rig, const Form& form, const SparseMatrix& a, unsigned first) {
  unsigned per = 32 / element_bits(form.a);
  for (unsigned reg = 0; reg < form.k / 2 / (4 * per) * 2; ++reg) {
    LaneValues words;
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned row = lane / 4 + reg % 2 * 8;
      words.low[lane] = pack(form.a, [&](unsigned i) {
        return a.kept[row * form.k / 2 + lane % 4 * per + i + reg / 2 * 4 * per];
      });
    }
    rig.set(fmt::format("%r{}", first + reg), words);
  }
}

/// Checks D of a warp's 16 rows and `n` columns against A * B; all of C was 0.
void expect_product(const MemoryRig& rig, const Form& form, const SparseMatrix& a,
                    const std::vector<uint64_t>& b, unsigned n) {
  bool half = form.d == "f16";
  for (unsigned reg = 0; reg < n / (half ? 4 : 2); ++reg) {
    LaneValues words = rig.get(fmt::format("%r{}", reg));
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < (half ? 2u : 1u); ++i) {
        unsigned index = half ? 2 * reg + i : reg;
        unsigned row = lane / 4 + index / 2 % 2 * 8;
        unsigned column = index / 4 * 8 + lane % 4 * 2 + index % 2;
        double sum = 0;
        for (unsigned k = 0; k < form.k; ++k) {
          sum += decode_element(form.a, a.dense[row * form.k + k]) *
                 decode_element(form.b, b[column * form.k + k]);
        }
        ASSERT_EQ(decode_element(form.d, words.low[lane] >> (16 * i)), sum)
            << form.a << " k " << form.k << " row " << row << " column " << column;
      }
    }
  }
}

std::vector<uint64_t> random_columns(const Form& form, unsigned n) {
  std::mt19937_64 random(9);
  std::vector<uint64_t> b(n * form.k);
  for (auto& bits : b) bits = small_number(form.b, random());
  return b;
}

TEST(MatrixSparse, MmaOfAllFormsAndSelectors) {
  for (const Form& form : kForms) {
    for (unsigned selector = 0; selector < form.selectors; ++selector) {
      for (const char* ordered : {"", "::ordered_metadata"}) {
        unsigned per_a = 32 / element_bits(form.a), per_b = 32 / element_bits(form.b);
        unsigned num_d = form.d == "f16" ? 2 : 4;
        unsigned num_a = form.k / 2 / (4 * per_a) * 2, num_b = form.k / (4 * per_b);
        MemoryRig rig(
            fmt::format("mma.sp{}.sync.aligned.m16n8k{}.row.col.{}.{}"
                        ".{}.{} {}, {}, {}, {}, %r50, {};",
                        ordered, form.k, form.d, form.a, form.b, form.d, list(0, num_d),
                        list(10, num_a), list(20, num_b), list(0, num_d), selector));
        ASSERT_EQ(rig.refusal(), "");
        SparseMatrix a(form, selector + 1);
        std::vector<uint64_t> b = random_columns(form, 8);
        set_a(rig, form, a, 10);
        rig.set("%r50", a.metadata(form, selector));
        for (unsigned reg = 0; reg < num_b; ++reg) {
          LaneValues words;
          for (unsigned lane = 0; lane < 32; ++lane) {
            words.low[lane] = pack(form.b, [&](unsigned i) {
              return b[lane / 4 * form.k + lane % 4 * per_b + i + reg * 4 * per_b];
            });
          }
          rig.set(fmt::format("%r{}", 20 + reg), words);
        }
        for (unsigned i = 0; i < num_d; ++i) rig.set_affine(fmt::format("%r{}", i), 0, 0);
        ASSERT_TRUE(rig.run());
        expect_product(rig, form, a, b, 8);
      }
    }
  }
}

/// The rows of A in registers, or in bricks of eight rows of 16 bytes in shared
/// memory; so is B.
TEST(MatrixSparse, Wgmma) {
  constexpr unsigned kColumns = 24;
  for (const Form& form : {kForms[3], kForms[4], kForms[5], kForms[7], kForms[9], kForms[12]}) {
    for (unsigned selector = 0; selector < form.selectors; ++selector) {
      for (bool fragment : {true, false}) {
        unsigned num_d = kColumns / (form.d == "f16" ? 4 : 2);
        std::string text = fmt::format(
            "wgmma.mma_async.sp.sync.aligned.m64n{}k{}.{}.{}.{} {}, {}, %rd1, "
            "%r150, {}, 0",
            kColumns, form.k, form.d, form.a, form.b, list(0, num_d),
            fragment ? list(130, 4) : "%rd0", selector);
        if (form.d != "s32") text += ", 1, 1";
        if (element_bits(form.a) == 16) text += fragment ? ", 0" : ", 0, 0";
        MemoryRig rig(text + ";");
        ASSERT_EQ(rig.refusal(), "") << text;
        rig.warpgroup_rank = 2;
        SparseMatrix a(form, selector + 1);
        std::vector<uint64_t> b = random_columns(form, kColumns);
        auto store = [&](uint32_t tile, const std::vector<uint64_t>& numbers, unsigned rows,
                         unsigned first, unsigned row_elements, const std::string& type) {
          unsigned bytes = element_bits(type) / 8;
          for (unsigned row = 0; row < rows; ++row) {
            for (unsigned i = 0; i < row_elements; ++i) {
              unsigned at = i * bytes;
              uint64_t to = rig.shared() + tile + (row + first) / 8 * 512 + at / 16 * 128 +
                            row % 8 * 16 + at % 16;
              std::memcpy(reinterpret_cast<void*>(to), &numbers[row * row_elements + i], bytes);
            }
          }
        };
        auto descriptor = [](uint64_t tile) {
          return tile >> 4 | uint64_t{128 >> 4} << 16 | uint64_t{512 >> 4} << 32;
        };
        store(0, a.kept, 16, 32, form.k / 2, form.a);
        store(8192, b, kColumns, 0, form.k, form.b);
        rig.set_affine("%rd1", descriptor(8192), 0);
        if (fragment) {
          set_a(rig, form, a, 130);
        } else {
          rig.set_affine("%rd0", descriptor(0), 0);
        }
        rig.set("%r150", a.metadata(form, selector));
        ASSERT_TRUE(rig.run()) << (rig.fault ? rig.fault->detail : "");
        expect_product(rig, form, a, b, kColumns);
      }
    }
  }
}

TEST(MatrixSparse, RefusesByName) {
  auto refusal = [](const std::string& text) { return MemoryRig(text).refusal(); };
  std::string head =
      "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
      "{%r0, %r1, %r2, %r3}, "
      "{%r10, %r11, %r12, %r13}, {%r20, %r21, %r22, %r23}, "
      "{%r0, %r1, %r2, %r3}, %r50, ";
  EXPECT_EQ(refusal(head + "1;"), "");
  EXPECT_NE(refusal(head + "2;").find("a sparsity selector from 0 to 1"), std::string::npos);
  EXPECT_NE(refusal(head + "%r51;"), "");
  EXPECT_NE(refusal("mma.sp.sync.aligned.m16n8k64.row.col.f16.e4m3.e4m3.f16 {%r0, %r1}, "
                    "{%r10, %r11, %r12, %r13}, {%r20, %r21, %r22, %r23}, {%r0, %r1}, "
                    "%r50, 0;"),
            "");
}

}  // namespace
}  // namespace cb::sim
