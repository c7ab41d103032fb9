// ld and st of every width, space and vector length against a model of one lane, with addresses and
// masks of every form.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

struct Access {
  const char* type;  ///< PTX
  unsigned bytes;    ///< in memory
  const char* reg;   ///< prefix of the register
  unsigned register_bytes;
  bool is_signed = false;
};

constexpr Access kAccesses[] = {
    {"u8", 1, "%b", 1},        {"u8", 1, "%h", 2},         {"s8", 1, "%h", 2, true},
    {"b8", 1, "%r", 4},        {"s8", 1, "%r", 4, true},   {"u8", 1, "%rd", 8},
    {"s8", 1, "%rd", 8, true}, {"u16", 2, "%h", 2},        {"u16", 2, "%r", 4},
    {"s16", 2, "%r", 4, true}, {"s16", 2, "%rd", 8, true}, {"b32", 4, "%r", 4},
    {"f32", 4, "%f", 4},       {"u32", 4, "%rd", 8},       {"s32", 4, "%rd", 8, true},
    {"b64", 8, "%rd", 8},      {"f64", 8, "%fd", 8},       {"b128", 16, "%q", 16},
};

struct Mask {
  uint32_t lanes;
  bool full;
};
constexpr Mask kMasks[] = {{kAllLanes, true},   {kAllLanes, false},  {0x000000ff, true},
                           {0x000000ff, false}, {0x00ffff00, false}, {0x80000001, false},
                           {0x5a5a1234, false}, {1u << 13, false},   {1, true}};

/// Offsets of the lanes from the start of a buffer of kRoom bytes.
constexpr uint64_t kRoom = 4096;
struct Addresses {
  std::array<uint64_t, kLanes> offset;
  bool affine = false;
  int32_t stride = 0;
};

std::vector<Addresses> address_forms(uint64_t bytes, std::mt19937_64& random) {
  std::vector<Addresses> forms;
  auto add_affine = [&](uint64_t base, int64_t stride) {
    Addresses form{.offset = {}, .affine = true, .stride = static_cast<int32_t>(stride)};
    for (size_t i = 0; i < kLanes; ++i) {
      form.offset[i] = base + static_cast<uint64_t>(stride * static_cast<int64_t>(i));
    }
    forms.push_back(form);
  };
  auto step = static_cast<int64_t>(bytes);
  add_affine(3 * bytes, 0);
  add_affine(5 * bytes, step);
  add_affine(0, 2 * step);
  add_affine(kRoom - bytes, -step);
  add_affine(kRoom - 32 * bytes, step);
  Addresses scattered{};
  for (uint64_t& offset : scattered.offset) offset = random() % (kRoom / bytes) * bytes;
  forms.push_back(scattered);
  // The same as a sequence, but written out.
  Addresses written = forms[1];
  written.affine = false;
  forms.push_back(written);
  return forms;
}

struct Where {
  const char* text;     ///< state space
  bool narrow = false;  ///< the address register has 32 bits
  enum Kind { kGlobal, kShared, kLocal, kGenericShared } kind = kGlobal;
};
constexpr Where kPlaces[] = {
    {".global", false, Where::kGlobal}, {"", false, Where::kGlobal},
    {".shared", false, Where::kShared}, {".shared::cta", true, Where::kShared},
    {".local", false, Where::kLocal},   {"", false, Where::kGenericShared}};

class AccessCheck {
 public:
  AccessCheck(const Access& access, unsigned elements, const Where& where, const char* order,
              bool store)
      : access_(access), elements_(elements), where_(where) {
    std::string vector = elements == 1 ? "" : fmt::format(".v{}", elements);
    std::string data = elements == 1 ? fmt::format("{}1", access.reg) : "{";
    for (unsigned k = 0; elements > 1 && k < elements; ++k) {
      data += fmt::format("{}{}{}", k == 0 ? "" : ", ", access.reg, k + 1);
    }
    if (elements > 1) data += "}";
    address_ = where.narrow ? "%r0" : "%rd0";
    text_ = store ? fmt::format("st{}{}{}.{} [{}+16], {};", order, where.text, vector, access.type,
                                address_, data)
                  : fmt::format("ld{}{}{}.{} {}, [{}+16];", order, where.text, vector, access.type,
                                data, address_);
    rig_ = std::make_unique<MemoryRig>(text_);
  }

  bool supported() const { return rig_->answer() && *rig_->answer(); }
  MemoryRig& rig() { return *rig_; }
  const Access& access() const { return access_; }
  unsigned elements() const { return elements_; }
  const Where& where() const { return where_; }
  const std::string& text() const { return text_; }
  std::string name(unsigned k) const { return fmt::format("{}{}", access_.reg, k + 1); }

  /// Start of the accessed memory of a lane, and what the register holds for it.
  uint64_t memory_of(size_t lane) const {
    return where_.kind == Where::kLocal ? rig_->local() + lane * MemoryRig::kLocalLaneBytes : base_;
  }
  uint64_t room() const {
    return where_.kind == Where::kLocal ? MemoryRig::kLocalLaneBytes : kRoom;
  }

  void prepare() {
    switch (where_.kind) {
      case Where::kGlobal:
        base_ = rig_->allocate(0, kRoom);
        bias_ = base_;
        break;
      case Where::kShared:
        base_ = rig_->shared();
        break;
      case Where::kGenericShared:
        base_ = bias_ = rig_->shared();
        break;
      case Where::kLocal:
        break;
    }
  }

  void set_addresses(Addresses& form) {
    for (uint64_t& offset : form.offset) offset %= room();
    if (form.affine && where_.kind != Where::kLocal) {
      rig_->set_affine(address_, bias_ + form.offset[0] - 16, form.stride);
      return;
    }
    bool uniform = true;
    for (uint64_t offset : form.offset) uniform &= offset == form.offset[0];
    LaneValues values;
    for (size_t i = 0; i < kLanes; ++i) values.low[i] = bias_ + form.offset[i] - 16;
    if (uniform) {
      rig_->set_affine(address_, values.low[0], 0);
    } else {
      rig_->set(address_, values);
    }
  }

 private:
  const Access& access_;
  unsigned elements_;
  const Where& where_;
  std::string address_;
  std::string text_;
  std::unique_ptr<MemoryRig> rig_;
  uint64_t base_ = 0;
  uint64_t bias_ = 0;
};

struct Word {
  uint64_t low = 0, high = 0;
  bool operator==(const Word&) const = default;
};

Word read_word(uint64_t address, const Access& access) {
  Word word;
  std::memcpy(&word, reinterpret_cast<const void*>(address), access.bytes);
  if (access.is_signed) {
    unsigned shift = 64 - 8 * access.bytes;
    word.low = static_cast<uint64_t>(static_cast<int64_t>(word.low << shift) >> shift);
    if (access.register_bytes < 8) word.low &= (uint64_t{1} << (8 * access.register_bytes)) - 1;
  }
  return word;
}

LaneValues random_values(std::mt19937_64& random, unsigned bytes) {
  LaneValues values;
  for (size_t i = 0; i < kLanes; ++i) {
    values.low[i] = bytes >= 8 ? random() : random() & ((uint64_t{1} << (8 * bytes)) - 1);
    values.high[i] = bytes == 16 ? random() : 0;
  }
  return values;
}

void check_load(AccessCheck& check, std::mt19937_64& random) {
  check.prepare();
  MemoryRig& rig = check.rig();
  for (Addresses form : address_forms(check.access().bytes * check.elements(), random)) {
    for (const Mask& mask : kMasks) {
      std::vector<LaneValues> before;
      for (unsigned k = 0; k < check.elements(); ++k) {
        before.push_back(random_values(random, check.access().register_bytes));
        rig.set(check.name(k), before.back());
      }
      check.set_addresses(form);
      rig.set_mask(mask.lanes, mask.full);
      ASSERT_TRUE(rig.run()) << check.text() << ": " << (rig.fault ? rig.fault->detail : "");
      for (unsigned k = 0; k < check.elements(); ++k) {
        LaneValues after = rig.get(check.name(k));
        for (size_t i = 0; i < kLanes; ++i) {
          bool active = (mask.lanes >> i & 1) != 0;
          if (!active && mask.full) continue;
          Word expected{before[k].low[i], before[k].high[i]};
          if (active) {
            expected = read_word(check.memory_of(i) + form.offset[i] + k * check.access().bytes,
                                 check.access());
          }
          ASSERT_EQ((Word{after.low[i], after.high[i]}), expected)
              << check.text() << " lane " << i << " element " << k << " mask " << mask.lanes;
        }
      }
    }
  }
}

void apply(const std::vector<LaneWrites>& posted) {
  for (const LaneWrites& writes : posted) {
    for (size_t i = 0; i < kLanes; ++i) {
      if ((writes.mask >> i & 1) == 0) continue;
      std::memcpy(reinterpret_cast<void*>(writes.addresses[i]), writes.data[i].data(),
                  writes.bytes);
    }
  }
}

std::vector<uint8_t> snapshot(const AccessCheck& check) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(check.memory_of(0));
  uint64_t size = check.where().kind == Where::kLocal ? kLanes * MemoryRig::kLocalLaneBytes : kRoom;
  return {bytes, bytes + size};
}

void check_store(AccessCheck& check, std::mt19937_64& random, bool posts) {
  check.prepare();
  MemoryRig& rig = check.rig();
  for (Addresses form : address_forms(check.access().bytes * check.elements(), random)) {
    for (const Mask& mask : kMasks) {
      std::vector<LaneValues> values;
      for (unsigned k = 0; k < check.elements(); ++k) {
        values.push_back(random_values(random, check.access().register_bytes));
        rig.set(check.name(k), values.back());
        if (random() % 4 == 0 && check.access().bytes < 16) {
          uint64_t base = values.back().low[0];
          rig.set_affine(check.name(k), base, 1);
          values.back() = rig.get(check.name(k));
        }
      }
      check.set_addresses(form);
      rig.set_mask(mask.lanes, mask.full);
      std::vector<uint8_t> expected = snapshot(check);
      for (size_t i = 0; i < kLanes; ++i) {
        if ((mask.lanes >> i & 1) == 0) continue;
        for (unsigned k = 0; k < check.elements(); ++k) {
          uint64_t at =
              check.memory_of(i) - check.memory_of(0) + form.offset[i] + k * check.access().bytes;
          Word word{values[k].low[i], values[k].high[i]};
          std::memcpy(expected.data() + at, &word, check.access().bytes);
        }
      }
      rig.posted.clear();
      rig.wakes.clear();
      ASSERT_TRUE(rig.run()) << check.text() << ": " << (rig.fault ? rig.fault->detail : "");
      EXPECT_EQ(rig.posted.size(), posts ? 1u : 0u) << check.text();
      EXPECT_TRUE(!posts || rig.wakes.empty()) << check.text();
      apply(rig.posted);
      ASSERT_TRUE(snapshot(check) == expected) << check.text() << " mask " << mask.lanes;
      if (posts || check.where().kind == Where::kLocal) continue;
      ASSERT_EQ(rig.wakes.size(), 1u) << check.text();
    }
  }
}

template <typename Check>
void for_all_accesses(const char* order, bool store, Check check) {
  for (const Where& where : kPlaces) {
    for (const Access& access : kAccesses) {
      for (unsigned elements : {1u, 2u, 4u, 8u}) {
        if (elements * access.bytes > (*order == 0 ? 32 : 16)) continue;
        if (access.bytes == 16 && elements > 1) continue;
        AccessCheck test(access, elements, where, order, store);
        bool too_long = elements == 8 && *order != 0;
        if (too_long && !test.supported()) continue;
        ASSERT_TRUE(test.supported()) << test.text() << " " << test.rig().refusal();
        check(test, where);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(MemoryAccess, WeakLoads) {
  std::mt19937_64 random(1);
  for_all_accesses("", false, [&](AccessCheck& test, const Where&) { check_load(test, random); });
}

TEST(MemoryAccess, StrongLoads) {
  std::mt19937_64 random(2);
  for_all_accesses(".volatile", false, [&](AccessCheck& test, const Where& where) {
    check_load(test, random);
    bool ordered = where.kind != Where::kLocal;
    EXPECT_EQ((test.rig().spec().flags & kOpOrdered) != 0, ordered) << test.text();
  });
}

TEST(MemoryAccess, WeakStores) {
  std::mt19937_64 random(3);
  for_all_accesses("", true,
                   [&](AccessCheck& test, const Where&) { check_store(test, random, false); });
}

TEST(MemoryAccess, StrongStoresArePostedExceptToSharedAndLocalMemory) {
  std::mt19937_64 random(4);
  for_all_accesses(".volatile", true, [&](AccessCheck& test, const Where& where) {
    check_store(test, random, where.kind == Where::kGlobal);
  });
}

TEST(MemoryAccess, UniformLoadsGiveUniformRegisters) {
  MemoryRig rig("ld.global.v2.u32 {%r1, %r2}, [%rd0];");
  uint64_t buffer = rig.allocate(0, 64);
  rig.set_affine("%rd0", buffer + 8, 0);
  ASSERT_TRUE(rig.run());
  EXPECT_TRUE(rig.meta("%r1").uniform());
  EXPECT_TRUE(rig.meta("%r2").uniform());
}

TEST(MemoryAccess, DestinationMayBeTheAddress) {
  MemoryRig rig("ld.global.v2.u64 {%rd0, %rd1}, [%rd0];");
  uint64_t buffer = rig.allocate(0, 1024);
  LaneValues addresses;
  for (size_t i = 0; i < kLanes; ++i) addresses.low[i] = buffer + (i * 7 % 32) * 16;
  rig.set("%rd0", addresses);
  ASSERT_TRUE(rig.run());
  for (size_t i = 0; i < kLanes; ++i) {
    uint64_t pair[2];
    std::memcpy(pair, reinterpret_cast<const void*>(addresses.low[i]), sizeof pair);
    EXPECT_EQ(rig.get("%rd0").low[i], pair[0]);
    EXPECT_EQ(rig.get("%rd1").low[i], pair[1]);
  }
}

TEST(MemoryAccess, SinksTakeNothing) {
  MemoryRig rig("ld.global.v4.u32 {%r1, _, _, %r2}, [%rd0];");
  uint64_t buffer = rig.allocate(0, 1024);
  for (int32_t stride : {0, 16}) {
    rig.set_affine("%rd0", buffer, stride);
    ASSERT_TRUE(rig.run());
    uint32_t word;
    std::memcpy(&word, reinterpret_cast<const void*>(buffer + 12), 4);
    EXPECT_EQ(rig.get("%r2").low[0], word);
  }
}

TEST(MemoryAccess, ParametersOfTheKernelAreReadOnly) {
  MemoryRig rig("ld.param.u64 %rd1, [p+24];");
  ASSERT_TRUE(rig.run()) << rig.refusal();
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(rig.params() + 24), 8);
  EXPECT_EQ(rig.get("%rd1").low[17], word);
  EXPECT_TRUE(rig.meta("%rd1").uniform());

  MemoryRig by_register("ld.param.v2.u32 {%r1, %r2}, [%rd0];");
  by_register.set_affine("%rd0", by_register.params(), 8);
  ASSERT_TRUE(by_register.run());

  MemoryRig store("st.u32 [%rd0], %r1;");
  store.set_affine("%rd0", store.params(), 0);
  store.set_affine("%r1", 0, 0);
  ASSERT_FALSE(store.run());
  EXPECT_EQ(store.fault->kind, Finding::Kind::kReadOnly);
}

TEST(MemoryAccess, CallVariablesAreLocal) {
  MemoryRig rig("st.param.b32 [call_variable+4], %r1;");
  LaneValues values;
  for (size_t i = 0; i < kLanes; ++i) values.low[i] = 100 + i;
  rig.set("%r1", values);
  ASSERT_TRUE(rig.run()) << rig.refusal();
  for (size_t i = 0; i < kLanes; ++i) {
    uint32_t word;
    uint64_t at = rig.local() + i * MemoryRig::kLocalLaneBytes + 32 + 4;
    std::memcpy(&word, reinterpret_cast<const void*>(at), 4);
    EXPECT_EQ(word, 100 + i);
  }
}

TEST(MemoryAccess, ImmediatesAreStored) {
  MemoryRig rig("st.global.v2.u16 [%rd0], {-2, %h1};");
  uint64_t buffer = rig.allocate(0, 128);
  rig.set_affine("%rd0", buffer, 4);
  rig.set_affine("%h1", 0x1234, 0);
  ASSERT_TRUE(rig.run()) << rig.refusal();
  for (uint64_t i = 0; i < kLanes; ++i) {
    uint32_t word;
    std::memcpy(&word, reinterpret_cast<const void*>(buffer + i * 4), 4);
    EXPECT_EQ(word, 0x1234fffe);
  }
}

TEST(MemoryAccess, WaitLoopsLearnWhatWasRead) {
  MemoryRig rig("ld.acquire.sys.global.u32 %r1, [%rd0];");
  uint64_t buffer = rig.allocate(0, 4096);
  SpinRecorder recorder;
  rig.context().recorder = &recorder;
  rig.set_affine("%rd0", buffer, 0);
  ASSERT_TRUE(rig.run());
  ASSERT_EQ(recorder.reads().size(), 1u);
  EXPECT_EQ(recorder.reads()[0].address, buffer);
  EXPECT_EQ(recorder.reads()[0].bytes, 4u);
  rig.set_affine("%rd0", buffer, 64);
  rig.set_mask(0xf0, false);
  ASSERT_TRUE(rig.run());
  ASSERT_EQ(recorder.reads().size(), 5u);
  EXPECT_EQ(recorder.reads()[4].address, buffer + 7 * 64);
  EXPECT_FALSE(recorder.spoiled());
}

}  // namespace
}  // namespace cb::sim
