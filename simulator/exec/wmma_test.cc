// wmma as programs see it: what load puts into a fragment, mma multiplies, and store writes back is
// a matrix product, whatever the places of the elements.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "simulator/exec/matrix_model.h"
#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

struct Form {
  std::string d, a, c;
  unsigned m, n, k;
  unsigned num_a, num_b, num_c, num_d;
  std::string prefix = "", tail = "";
};
const Form kForms[] = {
    {"f32", "f16", "f32", 16, 16, 16, 8, 8, 8, 8},
    {"f16", "f16", "f16", 16, 16, 16, 8, 8, 4, 4},
    {"f16", "f16", "f32", 32, 8, 16, 8, 8, 8, 4},
    {"f32", "f16", "f16", 8, 32, 16, 8, 8, 4, 8},
    {"f32", "bf16", "f32", 16, 16, 16, 4, 4, 8, 8},
    {"f32", "bf16", "f32", 32, 8, 16, 8, 2, 8, 8},
    {"f32", "bf16", "f32", 8, 32, 16, 2, 8, 8, 8},
    {"f32", "tf32", "f32", 16, 16, 8, 4, 4, 8, 8},
    {"s32", "s8", "s32", 16, 16, 16, 2, 2, 8, 8},
    {"s32", "u8", "s32", 32, 8, 16, 4, 1, 8, 8},
    {"s32", "s8", "s32", 8, 32, 16, 1, 4, 8, 8, "", ".satfinite"},
    {"s32", "s4", "s32", 8, 8, 32, 1, 1, 2, 2},
    {"s32", "u4", "s32", 8, 8, 32, 1, 1, 2, 2},
    {"s32", "b1", "s32", 8, 8, 128, 1, 1, 2, 2, ".xor.popc"},
    {"s32", "b1", "s32", 8, 8, 128, 1, 1, 2, 2, ".and.popc"},
    {"f64", "f64", "f64", 8, 8, 4, 1, 1, 2, 2},
};

unsigned bits_of_type(const std::string& type) { return type == "f64" ? 64 : element_bits(type); }

std::string list(const std::string& type, unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) {
    text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", type == "f64" ? "fd" : "r", first + i);
  }
  return text + "}";
}

/// A matrix in memory, `stride` elements from row to row (or column to column).
struct Placed {
  std::string type;
  unsigned rows, columns, stride;
  bool by_column;
  uint64_t at(uint64_t base, unsigned row, unsigned column) const {
    uint64_t bit = place(row, column) * bits_of_type(type);
    uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(base + bit / 8),
                std::max(bits_of_type(type) / 8, 1u));
    return word >> (bit % 8);
  }
  double number(uint64_t base, unsigned row, unsigned column) const {
    uint64_t bits = at(base, row, column);
    return type == "f64" ? std::bit_cast<double>(bits) : decode_element(type, bits);
  }
  void fill(uint64_t base, uint64_t seed) const {
    std::mt19937_64 random(seed);
    for (unsigned row = 0; row < rows; ++row) {
      for (unsigned column = 0; column < columns; ++column) {
        uint64_t bits = type == "f32"   ? small_number("tf32", random())
                        : type == "s32" ? random() & 0xff
                        : type == "f64" ? std::bit_cast<uint64_t>(double(random() % 9) - 4)
                                        : small_number(type, random());
        put(base, row, column, bits);
      }
    }
  }
  void put(uint64_t base, unsigned row, unsigned column, uint64_t bits) const {
    uint64_t bit = place(row, column) * bits_of_type(type);
    auto* byte = reinterpret_cast<uint8_t*>(base + bit / 8);
    if (bits_of_type(type) >= 8) {
      std::memcpy(byte, &bits, bits_of_type(type) / 8);
      return;
    }
    unsigned mask = (1u << bits_of_type(type)) - 1;
    *byte = static_cast<uint8_t>((*byte & ~(mask << bit % 8)) | (bits & mask) << bit % 8);
  }

 private:
  uint64_t place(unsigned row, unsigned column) const {
    return by_column ? uint64_t{column} * stride + row : uint64_t{row} * stride + column;
  }
};

/// Loads through a rig of its own and hands the registers on.
std::vector<LaneValues> load(const std::string& part, const Form& form, const Placed& matrix,
                             unsigned count, uint64_t seed, std::vector<double>& numbers,
                             bool shared, bool has_stride) {
  MemoryRig rig(fmt::format("wmma.load.{}.sync.aligned.{}.m{}n{}k{}{}.{} {}, [{}+64]{};", part,
                            matrix.by_column ? "col" : "row", form.m, form.n, form.k,
                            shared ? ".shared" : "", matrix.type, list(matrix.type, 0, count),
                            shared ? "%r100" : "%rd0", has_stride ? ", %r101" : ""));
  EXPECT_EQ(rig.refusal(), "");
  uint64_t buffer = shared ? rig.shared() + 256 : rig.allocate(0, 32768);
  matrix.fill(buffer + 64, seed);
  rig.set_affine(shared ? "%r100" : "%rd0", shared ? 256 : buffer, 0);
  if (has_stride) rig.set_affine("%r101", matrix.stride, 0);
  rig.context().timed = true;
  EXPECT_TRUE(rig.run()) << (rig.fault ? rig.fault->detail : "");
  EXPECT_EQ(rig.context().access.bytes,
            matrix.rows * matrix.columns * bits_of_type(matrix.type) / 8);
  for (unsigned row = 0; row < matrix.rows; ++row) {
    for (unsigned column = 0; column < matrix.columns; ++column) {
      numbers.push_back(matrix.number(buffer + 64, row, column));
    }
  }
  std::vector<LaneValues> registers;
  std::string kind = matrix.type == "f64" ? "%fd" : "%r";
  for (unsigned i = 0; i < count; ++i) registers.push_back(rig.get(fmt::format("{}{}", kind, i)));
  return registers;
}

void set_all(MemoryRig& rig, const std::string& type, unsigned first,
             const std::vector<LaneValues>& values) {
  for (unsigned i = 0; i < values.size(); ++i) {
    rig.set(fmt::format("%{}{}", type == "f64" ? "fd" : "r", first + i), values[i]);
  }
}

void check(const Form& form, bool column_a, bool column_b, bool column_c, bool shared) {
  SCOPED_TRACE(fmt::format("{} {} m{}n{}k{} {} {} {}", form.d, form.a, form.m, form.n, form.k,
                           column_a, column_b, column_c));
  // Strides are multiples of 16 bytes; without one, the matrix is packed.
  unsigned extra = shared ? 0 : 128 / bits_of_type(form.a);
  unsigned extra_c = shared ? 0 : 128 / bits_of_type(form.c);
  Placed a{form.a, form.m, form.k, (column_a ? form.m : form.k) + extra, column_a};
  Placed b{form.a, form.k, form.n, (column_b ? form.k : form.n) + extra, column_b};
  Placed c{form.c, form.m, form.n, (column_c ? form.m : form.n) + extra_c, column_c};
  std::vector<double> of_a, of_b, of_c;
  auto regs_a = load("a", form, a, form.num_a, 1, of_a, shared, !shared);
  auto regs_b = load("b", form, b, form.num_b, 2, of_b, shared, !shared);
  auto regs_c = load("c", form, c, form.num_c, 3, of_c, shared, !shared);
  std::string types = form.a == "f16" ? fmt::format("{}.{}", form.d, form.c)
                                      : fmt::format("{}.{}.{}.{}", form.d, form.a, form.a, form.c);
  MemoryRig mma(fmt::format("wmma.mma{}.sync.aligned.{}.{}.m{}n{}k{}.{}{} {}, {}, {}, {};",
                            form.prefix, column_a ? "col" : "row", column_b ? "col" : "row", form.m,
                            form.n, form.k, types, form.tail, list(form.d, 0, form.num_d),
                            list(form.a, 10, form.num_a), list(form.a, 20, form.num_b),
                            list(form.c, 30, form.num_c)));
  ASSERT_EQ(mma.refusal(), "");
  set_all(mma, form.a, 10, regs_a);
  set_all(mma, form.a, 20, regs_b);
  set_all(mma, form.c, 30, regs_c);
  ASSERT_TRUE(mma.run());
  EXPECT_EQ(mma.tensor_work.at(0).first.macs, form.m * form.n * form.k);
  EXPECT_EQ(mma.tensor_work.at(0).second, form.num_d);
  std::vector<LaneValues> result;
  for (unsigned i = 0; i < form.num_d; ++i) {
    result.push_back(mma.get(fmt::format("%{}{}", form.d == "f64" ? "fd" : "r", i)));
  }
  Placed d{form.d, form.m, form.n, column_c ? form.m : form.n, column_c};
  MemoryRig store(fmt::format("wmma.store.d.sync.aligned.{}.m{}n{}k{}{}.{} [{}], {};",
                              column_c ? "col" : "row", form.m, form.n, form.k,
                              shared ? ".shared" : "", form.d, shared ? "%r100" : "%rd0",
                              list(form.d, 0, form.num_d)));
  ASSERT_EQ(store.refusal(), "");
  uint64_t buffer = shared ? store.shared() + 512 : store.allocate(0, 8192);
  store.set_affine(shared ? "%r100" : "%rd0", shared ? 512 : buffer, 0);
  set_all(store, form.d, 0, result);
  ASSERT_TRUE(store.run()) << (store.fault ? store.fault->detail : "");
  for (unsigned row = 0; row < form.m; ++row) {
    for (unsigned column = 0; column < form.n; ++column) {
      double sum = of_c[row * form.n + column];
      for (unsigned k = 0; k < form.k; ++k) {
        double x = of_a[row * form.k + k], y = of_b[k * form.n + column];
        sum += form.prefix == ".xor.popc" ? std::abs(x - y) : x * y;
      }
      ASSERT_EQ(d.number(buffer, row, column), sum) << "row " << row << " column " << column;
    }
  }
}

TEST(Wmma, LoadMultiplyStore) {
  for (const Form& form : kForms) {
    bool fixed = bits_of_type(form.a) < 8;
    for (int layout = 0; layout < 8; ++layout) {
      bool column_a = (layout & 1) != 0, column_b = (layout & 2) != 0;
      if (fixed && (column_a || !column_b)) continue;
      for (bool shared : {true, false}) check(form, column_a, column_b, (layout & 4) != 0, shared);
    }
  }
}

/// m16n16k16 fragments are those of the mma instructions that they are multiplied with.
TEST(Wmma, FragmentsAreThoseOfMma) {
  MemoryRig rig(
      "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
      "[%r100];");
  for (unsigned i = 0; i < 256; ++i) {
    auto number = static_cast<uint16_t>(i);
    std::memcpy(reinterpret_cast<void*>(rig.shared() + 2 * i), &number, 2);
  }
  rig.set_affine("%r100", 0, 0);
  ASSERT_TRUE(rig.run());
  for (unsigned reg = 0; reg < 8; ++reg) {
    LaneValues words = rig.get(fmt::format("%r{}", reg));
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 2; ++i) {
        unsigned row = lane / 4 + reg % 2 * 8, column = lane % 4 * 2 + i + reg / 2 % 2 * 8;
        EXPECT_EQ(words.low[lane] >> (16 * i) & 0xffff, row * 16 + column);
      }
    }
  }
}

TEST(Wmma, MisuseIsAFinding) {
  MemoryRig rig(
      "wmma.load.c.sync.aligned.row.m16n16k16.f32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
      "[%rd0], "
      "%r100;");
  uint64_t buffer = rig.allocate(0, 1024);
  auto expect = [&](uint64_t base, int32_t step, uint32_t stride, Finding::Kind kind) {
    rig.set_affine("%rd0", base, step);
    rig.set_affine("%r100", stride, 0);
    EXPECT_FALSE(rig.run());
    ASSERT_TRUE(rig.fault);
    EXPECT_EQ(rig.fault->kind, kind) << rig.fault->detail;
    EXPECT_EQ(rig.context().mask, kAllLanes);
  };
  expect(buffer, 0, 20, Finding::Kind::kOutOfBounds);
  expect(buffer, 0, 15, Finding::Kind::kMisaligned);
  expect(buffer + 8, 0, 16, Finding::Kind::kMisaligned);
  expect(buffer, 4, 16, Finding::Kind::kIllegalInstruction);
  rig.set_affine("%rd0", buffer, 0);
  rig.set_affine("%r100", 16, 0);
  EXPECT_TRUE(rig.run());
}

TEST(Wmma, RefusesByName) {
  for (const char* text :
       {"wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%rd0];",
        "wmma.load.a.sync.aligned.row.m16n16k16.e4m3 {%r0, %r1}, [%rd0];",
        "wmma.load.a.sync.aligned.row.m16n16k16.bf16 {%r0, %r1}, [%rd0];",
        "wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
        "[%rd0];",
        "wmma.store.a.sync.aligned.row.m8n8k32.s32 [%rd0], {%r0, %r1};",
        "wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};",
        "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.u4.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};",
        "wmma.load.c.sync.aligned.row.m8n8k128.f32 {%r0, %r1}, [%rd0];"}) {
    EXPECT_NE(MemoryRig(text).refusal(), "") << text;
  }
}

}  // namespace
}  // namespace cb::sim
