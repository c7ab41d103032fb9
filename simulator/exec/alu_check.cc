// Trials draw values for the sources, a representation of each, and a mask; run the instruction;
// and compare every active lane of every destination with the model, and everything else with what
// was there before. All draws come from a generator seeded with the instruction's text, so that a
// failure repeats.

#include "simulator/exec/alu_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cb::sim {
namespace {

using ptx::Type;

class Values {
 public:
  explicit Values(uint64_t seed) : random_(seed) {}

  uint64_t bits() { return random_(); }
  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool chance(uint64_t one_in) { return below(one_in) == 0; }
  template <typename T, size_t n>
  T pick(const T (&list)[n]) {
    return list[below(n)];
  }

  uint64_t value(Fill fill) {
    switch (fill) {
      case Fill::kSmall:
        return chance(4) ? integer() : below(71);
      case Fill::kF16:
        return half(kF16Edges, 0x03ff, 10) * 0x0001000100010001u;
      case Fill::kBf16:
        return half(kBf16Edges, 0x007f, 7) * 0x0001000100010001u;
      case Fill::kF32:
        return f32();
      case Fill::kF64:
        return f64();
      default:
        return integer();
    }
  }

  /// Different numbers in the halves of a pair.
  uint64_t pair(Fill fill) { return (value(fill) & 0xffff) | (value(fill) & 0xffff) << 16; }

 private:
  uint64_t integer() {
    switch (below(6)) {
      case 0:
        return pick(kIntegerEdges);
      case 1:
        return pick(kIntegerEdges) + below(5) - 2;
      case 2:
        return bits() >> below(64);
      case 3:
        return -(bits() >> below(64));
      default:
        return bits();
    }
  }
  uint16_t half(const uint16_t (&edges)[16], uint16_t mantissa, int shift) {
    switch (below(4)) {
      case 0:
        return static_cast<uint16_t>(pick(edges) | (chance(2) ? 0x8000 : 0));
      case 1: {
        // Near one: sums and products of such numbers need all their bits.
        uint64_t one = mantissa == 0x3ff ? 15 : 127;
        return static_cast<uint16_t>((one - 3 + below(6)) << shift | (bits() & mantissa) |
                                     (chance(2) ? 0x8000 : 0));
      }
      default:
        return static_cast<uint16_t>(bits());
    }
  }
  uint64_t f32() {
    uint32_t sign = chance(2) ? 0x80000000 : 0;
    switch (below(5)) {
      case 0:
        return pick(kF32Edges) | sign;
      case 1:
        return static_cast<uint32_t>((124 + below(6)) << 23 | (bits() & 0x7fffff)) | sign;
      case 2:
        return static_cast<uint32_t>((124 + below(6)) << 23 | (bits() & 0x7f8000)) | sign;
      case 3:
        return static_cast<uint32_t>(below(40) << 23 | (bits() & 0x7fffff)) | sign;
      default:
        return static_cast<uint32_t>(bits());
    }
  }
  uint64_t f64() {
    uint64_t sign = chance(2) ? uint64_t{1} << 63 : 0;
    switch (below(5)) {
      case 0:
        return pick(kF64Edges) | sign;
      case 1:
        return (1020 + below(6)) << 52 | (bits() >> 12) | sign;
      case 2:
        return (1020 + below(6)) << 52 | (bits() >> 12 & 0xff00000000000) | sign;
      case 3:
        return below(80) << 52 | (bits() >> 12) | sign;
      default:
        return bits();
    }
  }

  static constexpr uint64_t kIntegerEdges[] = {0,
                                               1,
                                               2,
                                               3,
                                               31,
                                               32,
                                               63,
                                               64,
                                               0x7f,
                                               0x80,
                                               0xff,
                                               0x100,
                                               0x7fff,
                                               0x8000,
                                               0xffff,
                                               0x10000,
                                               0x7fffffff,
                                               0x80000000,
                                               0xffffffff,
                                               0x100000000,
                                               0x7fffffffffffffff,
                                               0x8000000000000000,
                                               ~uint64_t{0},
                                               ~uint64_t{1},
                                               0xffffffff80000000,
                                               0xffffffffffff8000};
  static constexpr uint16_t kF16Edges[16] = {0,      1,      0x3ff,  0x400,  0x401,  0x3c00,
                                             0x3bff, 0x3c01, 0x7bff, 0x7c00, 0x7c01, 0x7e00,
                                             0x7fff, 0x4900, 0x3800, 0x0200};
  static constexpr uint16_t kBf16Edges[16] = {0,      1,      0x7f,   0x80,   0x81,   0x3f80,
                                              0x3f7f, 0x3f81, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0,
                                              0x7fff, 0x4120, 0x3f00, 0x0040};
  static constexpr uint32_t kF32Edges[] = {
      0,          1,          0x7fffff,   0x800000,   0x800001,   0x3f800000, 0x3f7fffff,
      0x3f800001, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x7fc12345,
      0x4f000000, 0x4effffff, 0x4f800000, 0x5f000000, 0x3f000000, 0x3fc00000, 0x40200000,
      0x477fe000, 0x477fefff, 0x477ff000, 0x33000000, 0x33000001, 0x38800000, 0x43e00000,
      0x43e80000, 0x47600000, 0x7e800000, 0x7e800001, 0x7f000000, 0x00400000};
  static constexpr uint64_t kF64Edges[] = {0,
                                           1,
                                           0xfffffffffffff,
                                           0x10000000000000,
                                           0x3ff0000000000000,
                                           0x3fefffffffffffff,
                                           0x3ff0000000000001,
                                           0x7fefffffffffffff,
                                           0x7ff0000000000000,
                                           0x7ff0000000000001,
                                           0x7ff8000000000000,
                                           0x7fffffffffffffff,
                                           0x7ff8000000001234,
                                           0x41dfffffffc00000,
                                           0x41e0000000000000,
                                           0x41f0000000000000,
                                           0x43e0000000000000,
                                           0x43f0000000000000,
                                           0x3fe0000000000000,
                                           0x3ff8000000000000,
                                           0x47efffffe0000000,
                                           0x47efffffefffffff,
                                           0x36a0000000000000,
                                           0x40effc0000000000,
                                           0x40effe0000000000,
                                           0x3e60000000000000,
                                           0x3690000000000000,
                                           0x3690000000000001,
                                           0x4004000000000000};

  std::mt19937_64 random_;
};

constexpr int32_t kStrides[] = {1,  2,    4,     8,       16,      128,       3,         -1,
                                -4, -128, 65536, 1 << 20, 1 << 24, INT32_MAX, INT32_MIN, 0x10001};

std::set<CheckedHandler>& handlers() {
  static std::set<CheckedHandler> all;
  return all;
}

class Checker {
 public:
  explicit Checker(const AluCase& test)
      : test_(test), rig_(test.text), values_(std::hash<std::string>{}(test.text)) {}

  void check() {
    const auto& answer = rig_.answer();
    ASSERT_TRUE(answer.has_value()) << test_.text << ": not an ALU instruction";
    ASSERT_TRUE(answer->has_value()) << answer->error().message();
    for (size_t i = 0; i < rig_.operands().size(); ++i) {
      (rig_.operands()[i].place.is_destination ? destinations_ : sources_).push_back(i);
    }
    auto by_text = [&](size_t a, size_t b) {
      const AluOperand& x = rig_.operands()[a].place;
      const AluOperand& y = rig_.operands()[b].place;
      return std::pair(x.index, x.element) < std::pair(y.index, y.element);
    };
    std::sort(sources_.begin(), sources_.end(), by_text);
    std::sort(destinations_.begin(), destinations_.end(), by_text);
    if (!run_trials("")) return;
    for (size_t d : destinations_) {
      for (size_t s : sources_) {
        if (!can_alias(d, s)) continue;
        int32_t old = rig_.operands()[d].reg;
        rig_.set_register(d, rig_.operands()[s].reg);
        bool passed = run_trials(fmt::format(", destination {} is source {}", d, s));
        rig_.set_register(d, old);
        if (!passed) return;
      }
    }
  }

 private:
  bool can_alias(size_t d, size_t s) const {
    int32_t to = rig_.operands()[d].reg, from = rig_.operands()[s].reg;
    return to >= 0 && from >= 0 && to != from && rig_.type_of(to) == rig_.type_of(from);
  }

  Fill fill_of(size_t position, Type type) const {
    if (position < test_.fills.size() && test_.fills[position] != Fill::kByType) {
      return test_.fills[position];
    }
    if (type == Type::kF32) return Fill::kF32;
    return type == Type::kF64 ? Fill::kF64 : Fill::kInteger;
  }

  uint64_t fresh(Fill fill, Type type) {
    bool half = fill == Fill::kF16 || fill == Fill::kBf16;
    return half && ptx::bytes_of(type) == 4 ? values_.pair(fill) : values_.value(fill);
  }

  static uint64_t truncated(uint64_t value, Type type) {
    unsigned bytes = ptx::bytes_of(type);
    if (bytes == 0) return value & 1;
    return bytes >= 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1);
  }

  enum Form { kVector, kUniform, kAffine };

  void set_register(int32_t reg, Fill fill, Form form) {
    Type type = rig_.type_of(reg);
    if (type == Type::kPred) {
      LaneValues lanes;
      uint64_t mode = values_.below(4);
      for (uint64_t& lane : lanes.low) lane = mode < 2 ? mode : values_.below(2);
      rig_.set_vector(reg, lanes);
    } else if (form == kVector) {
      LaneValues lanes;
      for (uint64_t& lane : lanes.low) lane = fresh(fill, type);
      for (uint64_t& lane : lanes.high) lane = values_.bits();
      rig_.set_vector(reg, lanes);
    } else {
      uint64_t base = truncated(fresh(fill, type), type);
      if (form == kAffine && values_.chance(2)) base = truncated(base & ~uint64_t{127}, type);
      int32_t stride =
          values_.chance(8) ? static_cast<int32_t>(values_.bits()) : values_.pick(kStrides);
      rig_.set_affine(reg, base, form == kAffine && type != Type::kB128 ? stride : 0);
    }
  }

  Form form_of_trial(int trial) {
    switch (trial % 4) {
      case 0:
        return kVector;
      case 1:
        return kUniform;
      case 2:
        return static_cast<Form>(values_.below(3));
      default:
        return values_.chance(2) ? kAffine : kUniform;
    }
  }

  void set_operands(int trial) {
    for (size_t d : destinations_) {
      const AluRig::Operand& operand = rig_.operands()[d];
      if (operand.reg >= 0) {
        set_register(operand.reg, Fill::kInteger, static_cast<Form>(values_.below(3)));
      }
    }
    for (size_t position = 0; position < sources_.size(); ++position) {
      const AluRig::Operand& operand = rig_.operands()[sources_[position]];
      if (operand.reg < 0) continue;
      set_register(operand.reg, fill_of(position, operand.place.type), form_of_trial(trial));
    }
    uint32_t carries[] = {0, kAllLanes, static_cast<uint32_t>(values_.bits())};
    rig_.carry() = values_.pick(carries);
  }

  std::vector<uint64_t> inputs(const std::vector<LaneValues>& before, uint32_t carry, size_t lane) {
    std::vector<uint64_t> in;
    for (size_t s : sources_) {
      const AluRig::Operand& operand = rig_.operands()[s];
      uint64_t value = operand.constant;
      if (operand.reg >= 0) value = before[static_cast<size_t>(operand.reg)].low[lane];
      bool predicate = operand.place.type == Type::kPred;
      in.push_back(predicate ? value ^ uint64_t{operand.negated} : value);
    }
    in.push_back(carry >> lane & 1);
    return in;
  }

  std::vector<LaneValues> snapshot() const {
    std::vector<LaneValues> all;
    for (size_t reg = 0; reg < rig_.num_registers(); ++reg) {
      all.push_back(rig_.get(static_cast<int32_t>(reg)));
    }
    return all;
  }

  bool run_trials(const std::string& variant) {
    for (int trial = 0; trial < test_.trials; ++trial) {
      set_operands(trial);
      uint32_t some = static_cast<uint32_t>(values_.bits());
      if (values_.chance(4)) some = 1u << values_.below(32);
      int lanes_mode = trial / 4 % 3;
      Context& context = rig_.context();
      context.full = lanes_mode != 1;
      context.mask = lanes_mode == 0 ? kAllLanes : some;
      std::vector<LaneValues> before = snapshot();
      uint32_t carry = rig_.carry();
      rig_.run();
      std::string where = fmt::format("{}{}, trial {}, mask {:08x}{}", test_.text, variant, trial,
                                      context.mask, context.full ? ", full" : "");
      if (!agrees(before, carry, where)) return false;
      if (test_.accepts && trial % 4 == 0 && !uniform_agrees(before, where)) return false;
    }
    return true;
  }

  bool agrees(const std::vector<LaneValues>& before, uint32_t carry, const std::string& where) {
    std::vector<LaneValues> after = snapshot();
    const Context& context = rig_.context();
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if ((context.mask >> lane & 1) == 0) continue;
      std::vector<uint64_t> in = inputs(before, carry, lane);
      uint64_t out[8] = {};
      test_.model(in.data(), out);
      for (size_t k = 0; k < destinations_.size(); ++k) {
        int32_t reg = rig_.operands()[destinations_[k]].reg;
        if (reg < 0) continue;
        uint64_t expected = truncated(out[k], rig_.type_of(reg));
        uint64_t actual = after[static_cast<size_t>(reg)].low[lane];
        bool same = test_.accepts ? test_.accepts(in.data(), expected, actual) : expected == actual;
        if (!same) {
          ADD_FAILURE() << where << ", lane " << lane << ": " << describe(in) << " gave "
                        << fmt::format("{:#x}, expected {:#x}", actual, expected);
          return false;
        }
      }
      bool carry_out = (rig_.carry() >> lane & 1) != 0;
      if (rig_.spec().writes_carry && carry_out != (out[destinations_.size()] != 0)) {
        ADD_FAILURE() << where << ", lane " << lane << ": " << describe(in) << " carried "
                      << carry_out;
        return false;
      }
    }
    return untouched(before, after, carry, where);
  }

  /// What the instruction may not write: other registers, and the lanes outside the mask.
  bool untouched(const std::vector<LaneValues>& before, const std::vector<LaneValues>& after,
                 uint32_t carry, const std::string& where) {
    const Context& context = rig_.context();
    for (size_t reg = 0; reg < before.size(); ++reg) {
      bool written = std::any_of(destinations_.begin(), destinations_.end(), [&](size_t d) {
        return rig_.operands()[d].reg == static_cast<int32_t>(reg);
      });
      bool predicate = rig_.type_of(static_cast<int32_t>(reg)) == Type::kPred;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        bool active = (context.mask >> lane & 1) != 0;
        if (written && (active || (context.full && !predicate))) continue;
        if (before[reg].low[lane] != after[reg].low[lane] ||
            before[reg].high[lane] != after[reg].high[lane]) {
          ADD_FAILURE() << where << ": lane " << lane << " of register " << reg << " changed";
          return false;
        }
      }
    }
    uint32_t allowed = rig_.spec().writes_carry ? context.mask : 0;
    if (((carry ^ rig_.carry()) & ~allowed) != 0) {
      ADD_FAILURE() << where << ": the carry changed";
      return false;
    }
    return true;
  }

  /// One lane's sources in all lanes must give that lane's result.
  bool uniform_agrees(const std::vector<LaneValues>& before, const std::string& where) {
    int32_t destination = rig_.operands()[destinations_[0]].reg;
    LaneValues vector = rig_.get(destination);
    for (int k = 0; k < 4; ++k) {
      size_t lane = values_.below(kLanes);
      if ((rig_.context().mask >> lane & 1) == 0) continue;
      for (size_t s : sources_) {
        int32_t reg = rig_.operands()[s].reg;
        if (reg >= 0) rig_.set_affine(reg, before[static_cast<size_t>(reg)].low[lane], 0);
      }
      rig_.run();
      uint64_t uniform = rig_.get(destination).low[lane];
      if (uniform != vector.low[lane]) {
        ADD_FAILURE() << where
                      << fmt::format(", lane {}: {:#x} as a vector, {:#x} uniform", lane,
                                     vector.low[lane], uniform);
        return false;
      }
    }
    return true;
  }

  static std::string describe(const std::vector<uint64_t>& in) {
    std::string text;
    for (uint64_t value : in) text += fmt::format("{}{:#x}", text.empty() ? "" : ", ", value);
    return text;
  }

  const AluCase& test_;
  AluRig rig_;
  Values values_;
  std::vector<size_t> sources_;
  std::vector<size_t> destinations_;
};

}  // namespace

void check_alu(const AluCase& test) {
  AluRig rig(test.text);
  if (rig.answer() && *rig.answer()) note_checked(rig.spec());
  Checker(test).check();
}

const std::set<CheckedHandler>& checked_handlers() { return handlers(); }

void note_checked(const AluSpec& spec) { handlers().insert(checked_handler(spec)); }

CheckedHandler checked_handler(const AluSpec& spec) { return {spec.fn, spec.aux}; }

}  // namespace cb::sim
