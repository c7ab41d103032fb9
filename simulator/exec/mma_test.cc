// mma against sums in double precision, with the place of each element as the
// PTX ISA gives it for one thread and one index.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "simulator/exec/matrix_model.h"
#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

struct Form {
  const char* shape;
  unsigned m, k;
  std::string d, a, b, c;
  std::string extra = "";  ///< between the layouts and the types
  std::string tail = "";   ///< after the types
};

const Form kForms[] = {
    {"m16n8k8", 16, 8, "f32", "f16", "f16", "f32"},
    {"m16n8k16", 16, 16, "f32", "f16", "f16", "f32"},
    {"m16n8k8", 16, 8, "f16", "f16", "f16", "f16"},
    {"m16n8k16", 16, 16, "f16", "f16", "f16", "f16"},
    {"m16n8k8", 16, 8, "f32", "bf16", "bf16", "f32"},
    {"m16n8k16", 16, 16, "f32", "bf16", "bf16", "f32"},
    {"m16n8k4", 16, 4, "f32", "tf32", "tf32", "f32"},
    {"m16n8k8", 16, 8, "f32", "tf32", "tf32", "f32"},
    {"m16n8k16", 16, 16, "f32", "e4m3", "e5m2", "f32"},
    {"m16n8k32", 16, 32, "f32", "e5m2", "e4m3", "f32"},
    {"m16n8k16", 16, 16, "f16", "e4m3", "e4m3", "f16"},
    {"m16n8k32", 16, 32, "f16", "e5m2", "e5m2", "f16"},
    {"m8n8k16", 8, 16, "s32", "s8", "u8", "s32"},
    {"m16n8k16", 16, 16, "s32", "u8", "s8", "s32"},
    {"m16n8k32", 16, 32, "s32", "s8", "s8", "s32"},
    {"m16n8k32", 16, 32, "s32", "u8", "u8", "s32", ".satfinite"},
    {"m8n8k32", 8, 32, "s32", "s4", "u4", "s32"},
    {"m16n8k32", 16, 32, "s32", "u4", "s4", "s32"},
    {"m16n8k64", 16, 64, "s32", "s4", "s4", "s32", ".satfinite"},
    {"m8n8k128", 8, 128, "s32", "b1", "b1", "s32", "", ".xor.popc"},
    {"m16n8k128", 16, 128, "s32", "b1", "b1", "s32", "", ".and.popc"},
    {"m16n8k256", 16, 256, "s32", "b1", "b1", "s32", "", ".xor.popc"},
};

std::string list(const char* kind, unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) {
    text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", kind, first + i);
  }
  return text + "}";
}

constexpr unsigned kFirstA = 20, kFirstB = 40, kFirstC = 60;

struct Matrix {
  unsigned columns = 0;
  std::vector<uint64_t> bits;
  Matrix(unsigned rows, unsigned columns_) : columns(columns_), bits(rows * columns_) {}
  uint64_t& at(unsigned row, unsigned column) { return bits[row * columns + column]; }
};

/// One form on a rig: matrices in, matrix out.
class Product {
 public:
  explicit Product(const Form& form)
      : form_(form),
        rig_(fmt::format("mma.sync.aligned.{}.row.col{}.{}.{}.{}.{}{} {}, {}, {}, {};", form.shape,
                         form.extra, form.d, form.a, form.b, form.c, form.tail,
                         list("r", 0, results()), list("r", kFirstA, words(form.m, form.a)),
                         list("r", kFirstB, words(8, form.b)), list("r", kFirstC, results()))) {}

  MemoryRig& rig() { return rig_; }
  unsigned results() const { return form_.m / (form_.d == "f16" ? 8 : 4); }

  Matrix run(Matrix& a, Matrix& b, Matrix& c) {
    fill(kFirstA, words(form_.m, form_.a), [&](unsigned lane, unsigned reg) {
      unsigned per = 32 / element_bits(form_.a);
      unsigned block = form_.m == 16 ? reg / 2 : reg;
      unsigned row = lane / 4 + (form_.m == 16 && reg % 2 == 1 ? 8 : 0);
      return pack(form_.a,
                  [&](unsigned i) { return a.at(row, lane % 4 * per + i + block * 4 * per); });
    });
    fill(kFirstB, words(8, form_.b), [&](unsigned lane, unsigned reg) {
      unsigned per = 32 / element_bits(form_.b);
      return pack(form_.b,
                  [&](unsigned i) { return b.at(lane % 4 * per + i + reg * 4 * per, lane / 4); });
    });
    fill(kFirstC, results(), [&](unsigned lane, unsigned reg) {
      unsigned per = form_.c == "f16" ? 2 : 1;
      return pack(form_.c, [&](unsigned i) {
        unsigned index = reg * per + i;
        return c.at(lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2);
      });
    });
    EXPECT_TRUE(rig_.run());
    Matrix d(form_.m, 8);
    for (unsigned reg = 0; reg < results(); ++reg) {
      LaneValues values = rig_.get(fmt::format("%r{}", reg));
      for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned per = form_.d == "f16" ? 2 : 1;
        for (unsigned i = 0; i < per; ++i) {
          unsigned index = reg * per + i;
          d.at(lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2) =
              values.low[lane] >> (16 * i) & (per == 2 ? 0xffff : 0xffffffff);
        }
      }
    }
    return d;
  }

 private:
  unsigned words(unsigned rows, const std::string& type) const {
    return rows * form_.k * element_bits(type) / 32 / 32;
  }
  template <typename At>
  uint64_t pack(const std::string& type, At at) {
    unsigned bits = element_bits(type);
    uint64_t word = 0;
    for (unsigned i = 0; i < 32 / bits; ++i) word |= at(i) << (bits * i);
    return word;
  }
  template <typename Value>
  void fill(unsigned first, unsigned count, Value value) {
    for (unsigned reg = 0; reg < count; ++reg) {
      LaneValues values;
      for (unsigned lane = 0; lane < 32; ++lane) values.low[lane] = value(lane, reg);
      rig_.set(fmt::format("%r{}", first + reg), values);
    }
  }

  const Form& form_;
  MemoryRig rig_;
};

struct Sum {
  double value = 0;
  double magnitude = 0;  ///< of all terms
};

Sum model(const Form& form, Matrix& a, Matrix& b, Matrix& c, unsigned row, unsigned column) {
  Sum sum;
  auto add = [&sum](double term) {
    sum.value += term;
    sum.magnitude += std::abs(term);
  };
  add(decode_element(form.c, c.at(row, column)));
  for (unsigned k = 0; k < form.k; ++k) {
    if (form.tail == ".xor.popc") {
      add(static_cast<double>(a.at(row, k) ^ b.at(k, column)));
    } else {
      add(decode_element(form.a, a.at(row, k)) * decode_element(form.b, b.at(k, column)));
    }
  }
  return sum;
}

class Mma : public ::testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Forms, Mma, ::testing::ValuesIn(kForms));

TEST_P(Mma, SmallWholeNumbersAreExact) {
  const Form& form = GetParam();
  Product product(form);
  ASSERT_EQ(product.rig().refusal(), "");
  std::mt19937_64 random(3);
  Matrix a(form.m, form.k), b(form.k, 8), c(form.m, 8);
  for (auto& bits : a.bits) bits = small_number(form.a, random());
  for (auto& bits : b.bits) bits = small_number(form.b, random());
  for (auto& bits : c.bits) {
    bits = form.c == "s32" ? random() & 0xffff
                           : small_number(form.c == "f32" ? "tf32" : "f16", random());
  }
  Matrix d = product.run(a, b, c);
  for (unsigned row = 0; row < form.m; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      EXPECT_EQ(decode_element(form.d, d.at(row, column)), model(form, a, b, c, row, column).value)
          << "row " << row << " column " << column;
    }
  }
  ASSERT_EQ(product.rig().tensor_work.size(), 1u);
  EXPECT_EQ(product.rig().tensor_work[0].first.macs, form.m * 8 * form.k);
  EXPECT_EQ(product.rig().tensor_work[0].second, product.results());
}

/// The identity as B shows where each element of A goes, and as A each of B.
TEST_P(Mma, AnIdentityCopies) {
  const Form& form = GetParam();
  if (form.tail == ".xor.popc") GTEST_SKIP() << "no product";
  auto one = [](const std::string& type) -> uint64_t {
    if (type == "f16") return 0x3c00;
    if (type == "bf16") return 0x3f80;
    if (type == "tf32") return 0x3f800000;
    if (type == "e4m3") return 0x38;
    return type == "e5m2" ? 0x3c : 1;
  };
  Product product(form);
  std::mt19937_64 random(5);
  for (unsigned first = 0; first < form.k; first += 8) {
    Matrix a(form.m, form.k), b(form.k, 8), c(form.m, 8);
    for (auto& bits : a.bits) bits = small_number(form.a, random());
    for (unsigned i = 0; i < std::min(8u, form.k); ++i) b.at(first + i, i) = one(form.b);
    Matrix d = product.run(a, b, c);
    for (unsigned row = 0; row < form.m; ++row) {
      for (unsigned column = 0; column < std::min(8u, form.k); ++column) {
        EXPECT_EQ(decode_element(form.d, d.at(row, column)),
                  decode_element(form.a, a.at(row, first + column)));
      }
    }
  }
}

TEST_P(Mma, RandomNumbersAreWithinTheError) {
  const Form& form = GetParam();
  Product product(form);
  std::mt19937_64 random(11);
  bool whole = form.d == "s32";
  for (int round = 0; round < 20; ++round) {
    Matrix a(form.m, form.k), b(form.k, 8), c(form.m, 8);
    auto any = [&](const std::string& type) {
      uint64_t bits = random() & ((uint64_t{1} << element_bits(type)) - 1);
      // Exponents that leave room for the sum.
      if (type == "bf16") bits = (bits & 0x83ff) | 0x3c00;
      if (type == "tf32" || type == "f32") bits = (bits & 0x83ffffff) | 0x3c000000;
      if (type == "f16") bits = (bits & 0x83ff) | (random() % 20 << 10);
      if (type == "e5m2") bits = (bits & 0x83) | (random() % 20 << 2);
      if (type == "e4m3" && (bits & 0x7f) == 0x7f) bits ^= 1;
      return bits;
    };
    for (auto& bits : a.bits) bits = any(form.a);
    for (auto& bits : b.bits) bits = any(form.b);
    for (auto& bits : c.bits) bits = any(form.c);
    Matrix d = product.run(a, b, c);
    for (unsigned row = 0; row < form.m; ++row) {
      for (unsigned column = 0; column < 8; ++column) {
        Sum sum = model(form, a, b, c, row, column);
        double actual = decode_element(form.d, d.at(row, column));
        if (whole) {
          double expected = sum.value;
          if (form.extra == ".satfinite") {
            expected = std::clamp(expected, -2147483648.0, 2147483647.0);
          }
          EXPECT_EQ(d.at(row, column),
                    static_cast<uint32_t>(static_cast<uint64_t>(static_cast<int64_t>(expected))));
          continue;
        }
        double bound = std::ldexp(sum.magnitude, -23) * (form.k + 1);
        if (form.d == "f16") {
          if (std::abs(sum.value) > 65000) continue;
          bound += std::max(std::ldexp(std::abs(sum.value), -11), std::ldexp(1.0, -25));
        }
        EXPECT_NEAR(actual, sum.value, bound);
      }
    }
  }
}

TEST(MmaTest, NansInfinitiesAndSubnormals) {
  const Form& form = kForms[1];  // .f16 with .f32
  Product product(form);
  Matrix a(16, 16), b(16, 8), c(16, 8);
  a.at(0, 0) = 0x7e01;  // NaN
  a.at(1, 0) = 0x7c00;  // infinity
  a.at(2, 0) = 0x0001;  // 2^-24
  b.at(0, 0) = 0x3c00;
  b.at(0, 1) = 0xbc00;
  c.at(3, 0) = 0x00000001;  // a subnormal f32 stays
  c.at(4, 0) = 0xffc00123;
  c.at(1, 3) = 0xff800000;
  Matrix d = product.run(a, b, c);
  EXPECT_EQ(d.at(0, 0), 0x7fffffffu);
  EXPECT_EQ(d.at(1, 0), 0x7f800000u);
  EXPECT_EQ(d.at(1, 1), 0xff800000u);
  EXPECT_EQ(d.at(1, 2), 0x7fffffffu) << "infinity times 0";
  EXPECT_EQ(d.at(2, 0), std::bit_cast<uint32_t>(0x1p-24f));
  EXPECT_EQ(d.at(3, 0), 1u);
  EXPECT_EQ(d.at(4, 0), 0x7fffffffu);

  Product bf16(kForms[5]);
  a = Matrix(16, 16);
  a.at(0, 0) = 0x0001;  // 2^-133
  b.at(0, 0) = 0x3f80;
  EXPECT_EQ(bf16.run(a, b, c).at(0, 0), std::bit_cast<uint32_t>(0x1p-133f));

  Product f8(kForms[9]);  // .e5m2 with .e4m3
  Matrix a8(16, 32), b8(32, 8), c8(16, 8);
  a8.at(0, 0) = 0x7c;  // infinity
  a8.at(1, 1) = 0x01;  // 2^-16
  a8.at(2, 2) = 0x3c;
  b8.at(0, 0) = 0x38;
  b8.at(1, 0) = 0x01;  // 2^-9
  b8.at(2, 1) = 0x7f;  // NaN
  b8.at(2, 2) = 0x7e;  // 448
  Matrix d8 = f8.run(a8, b8, c8);
  EXPECT_EQ(d8.at(0, 0), 0x7f800000u);
  EXPECT_EQ(d8.at(1, 0), std::bit_cast<uint32_t>(0x1p-25f));
  EXPECT_EQ(d8.at(2, 1), 0x7fffffffu);
  EXPECT_EQ(d8.at(2, 2), std::bit_cast<uint32_t>(448.0f));
}

TEST(MmaTest, HalfAccumulatorsAreRoundedOnce) {
  Product product(kForms[3]);
  Matrix a(16, 16), b(16, 8), c(16, 8);
  c.at(0, 0) = 0x6800;  // 2048, where the next f16 is 2050
  a.at(0, 0) = a.at(0, 1) = 0x3c00;
  b.at(0, 0) = b.at(1, 0) = 0x3c00;
  EXPECT_EQ(product.run(a, b, c).at(0, 0), 0x6801u) << "2048 + 1 + 1";
  c.at(0, 0) = 0x7bff;
  b.at(0, 0) = 0x7bff;
  EXPECT_EQ(product.run(a, b, c).at(0, 0), 0x7c00u);
}

/// a * b + c in long double arithmetic with a correction, moved towards
/// `toward` (NaN: nearest).
double rounded_fma(double a, double b, double c, double toward) {
  double nearest = std::fma(a, b, c);
  if (std::isnan(toward)) return nearest;
  // The exact sum less the nearest double: the product is split into two
  // doubles.
  double high = a * b, low = std::fma(a, b, -high);
  __float128 error = static_cast<__float128>(high) + low + c - nearest;
  if (error == 0) return nearest;
  bool is_above = nearest > toward ? error < 0 : error > 0;
  return is_above ? std::nextafter(nearest, toward) : nearest;
}

struct DoubleForm {
  const char* shape;
  unsigned m, k;
};
class MmaDouble : public ::testing::TestWithParam<DoubleForm> {};
INSTANTIATE_TEST_SUITE_P(Forms, MmaDouble,
                         ::testing::Values(DoubleForm{"m8n8k4", 8, 4}, DoubleForm{"m16n8k4", 16, 4},
                                           DoubleForm{"m16n8k8", 16, 8},
                                           DoubleForm{"m16n8k16", 16, 16}));

/// Element i of A or C in a lane is of the rows and columns that the ISA gives;
/// a step that is not fused, or another order, would show in the last bits.
TEST_P(MmaDouble, IsAChainOfFmaInTheOrderOfK) {
  const DoubleForm& form = GetParam();
  unsigned num_a = form.m * form.k / 32, num_b = form.k / 4, num_d = form.m / 4;
  for (const char* rounding : {"", ".rn", ".rz", ".rp"}) {
    MemoryRig rig(fmt::format("mma.sync.aligned.{}.row.col.f64.f64.f64.f64{} {}, {}, {}, {};",
                              form.shape, rounding, list("fd", 0, num_d), list("fd", 4, num_a),
                              list("fd", 12, num_b), list("fd", 0, num_d)));
    ASSERT_EQ(rig.refusal(), "");
    std::mt19937_64 random(4);
    std::uniform_real_distribution<double> uniform(-3, 3);
    double a[16][16], b[16][8], c[16][8];
    auto load = [&](unsigned first, unsigned count, auto place) {
      for (unsigned i = 0; i < count; ++i) {
        LaneValues values;
        for (unsigned lane = 0; lane < 32; ++lane) {
          double value = uniform(random);
          place(i, lane / 4, lane % 4) = value;
          values.low[lane] = std::bit_cast<uint64_t>(value);
        }
        rig.set(fmt::format("%fd{}", first + i), values);
      }
    };
    unsigned halves = form.m / 8;
    load(4, num_a, [&](unsigned i, unsigned group, unsigned thread) -> double& {
      return a[group + i % halves * 8][thread + i / halves * 4];
    });
    load(12, num_b, [&](unsigned i, unsigned group, unsigned thread) -> double& {
      return b[thread + i * 4][group];
    });
    load(0, num_d, [&](unsigned i, unsigned group, unsigned thread) -> double& {
      return c[group + i / 2 * 8][thread * 2 + i % 2];
    });
    ASSERT_TRUE(rig.run());
    double toward = std::string(rounding) == ".rp"   ? std::numeric_limits<double>::infinity()
                    : std::string(rounding) == ".rz" ? 0.0
                                                     : std::nan("");
    for (unsigned i = 0; i < num_d; ++i) {
      LaneValues values = rig.get(fmt::format("%fd{}", i));
      for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double sum = c[row][column];
        for (unsigned k = 0; k < form.k; ++k)
          sum = rounded_fma(a[row][k], b[k][column], sum, toward);
        EXPECT_EQ(values.low[lane], std::bit_cast<uint64_t>(sum)) << rounding;
      }
    }
  }
}

/// Four products of 8 by 4 with 4 by 8, of lanes 4q to 4q + 3 and 16 + 4q to 16
/// + 4q + 3.
TEST(MmaTest, QuadsOfVoltaMultiplyMatricesOfTheirOwn) {
  for (int form = 0; form < 16; ++form) {
    bool row_a = (form & 1) != 0, row_b = (form & 2) != 0;
    bool half_c = (form & 4) != 0, half_d = (form & 8) != 0;
    if (half_d && !half_c) continue;
    MemoryRig rig(fmt::format("mma.sync.aligned.m8n8k4.{}.{}.{}.f16.f16.{} {}, {}, {}, {};",
                              row_a ? "row" : "col", row_b ? "row" : "col", half_d ? "f16" : "f32",
                              half_c ? "f16" : "f32", list("r", 0, half_d ? 4 : 8),
                              list("r", 20, 2), list("r", 22, 2), list("r", 24, half_c ? 4 : 8)));
    ASSERT_EQ(rig.refusal(), "");
    std::mt19937_64 random(6);
    LaneValues words[12];
    for (unsigned i = 0; i < 12; ++i) {
      for (auto& word : words[i].low) {
        word = small_number("f16", random()) | small_number("f16", random()) << 16;
        if (i >= 4 && !half_c) word = small_number("tf32", random());
      }
      if (i < 8 || !half_c) rig.set(fmt::format("%r{}", 20 + i), words[i]);
    }
    ASSERT_TRUE(rig.run());
    auto half = [](const LaneValues* registers, unsigned lane, unsigned i) {
      return decode_element("f16", registers[i / 2].low[lane] >> (i % 2 * 16));
    };
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned quad = lane / 4 % 4 * 4, upper = lane / 16 * 4;
      for (unsigned i = 0; i < 8; ++i) {
        auto place = [&](bool is_half) {
          if (is_half) return std::pair(upper + lane % 4, i);
          return std::pair(upper + (lane & 1) + (i & 2), (i & 4) + (lane & 2) + (i & 1));
        };
        auto [row, column] = place(half_d);
        double sum = 0;
        // C has its elements elsewhere when its type is another one.
        for (unsigned other = 0; other < 32; ++other) {
          if (other / 4 % 4 * 4 != quad) continue;
          for (unsigned j = 0; j < 8; ++j) {
            unsigned up = other / 16 * 4;
            unsigned r = half_c ? up + other % 4 : up + (other & 1) + (j & 2);
            unsigned n = half_c ? j : (j & 4) + (other & 2) + (j & 1);
            if (r != row || n != column) continue;
            sum +=
                half_c ? half(words + 4, other, j) : decode_element("f32", words[4 + j].low[other]);
          }
        }
        for (unsigned k = 0; k < 4; ++k) {
          unsigned lane_a = row_a ? quad + row % 4 + row / 4 * 16 : quad + k + row / 4 * 16;
          unsigned lane_b =
              row_b ? quad + k + column / 4 * 16 : quad + column % 4 + column / 4 * 16;
          sum += half(words, lane_a, row_a ? k : row % 4) *
                 half(words + 2, lane_b, row_b ? column % 4 : k);
        }
        uint64_t word = rig.get(fmt::format("%r{}", half_d ? i / 2 : i)).low[lane];
        EXPECT_EQ(decode_element(half_d ? "f16" : "f32", half_d ? word >> (i % 2 * 16) : word), sum)
            << "form " << form << " lane " << lane << " element " << i;
      }
    }
  }
}

TEST(MmaTest, RefusesByName) {
  auto refusal = [](const std::string& text) { return MemoryRig(text).refusal(); };
  EXPECT_NE(refusal("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32 "
                    "{%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5},{%f0,%f1,%f2,%f3};")
                .find("kind::f8f6f4"),
            std::string::npos);
  EXPECT_NE(refusal("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                    "{%f0,%f1,%f2,%f3},{%r0,%r1},{%r4,%r5},{%f0,%f1,%f2,%f3};")
                .find("operand 2 must be a list of 4"),
            std::string::npos);
  for (const char* text :
       {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
        "mma.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32",
        "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
        "mma.sync.aligned.m8n8k8.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k256.row.col.s32.s4.s4.s32",
        "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k16"}) {
    EXPECT_NE(refusal(std::string(text) + " {%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5},"
                                          "{%f0,%f1,%f2,%f3};"),
              "")
        << text;
  }
}

TEST(MmaTest, QuadsDoNotRoundASumOfFloats) {
  MemoryRig rig(fmt::format("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {}, {}, {}, {};",
                            list("r", 0, 4), list("r", 20, 2), list("r", 22, 2), list("r", 24, 8)));
  EXPECT_NE(rig.refusal(), "");
}

TEST(MmaTest, NeedsAllLanes) {
  Product product(kForms[1]);
  MemoryRig& rig = product.rig();
  Matrix a(16, 16), b(16, 8), c(16, 8);
  product.run(a, b, c);
  EXPECT_EQ(rig.gathered.back(), kAllLanes);
  rig.gather_answer = false;
  EXPECT_FALSE(rig.run());
  EXPECT_FALSE(rig.fault);
  rig.gather_answer = true;
  rig.set_mask(0xffff, false);
  EXPECT_FALSE(rig.run());
  ASSERT_TRUE(rig.fault);
  EXPECT_EQ(rig.fault->kind, Finding::Kind::kIllegalInstruction);
  EXPECT_EQ(rig.fault->lane, 16);
}

}  // namespace
}  // namespace cb::sim
