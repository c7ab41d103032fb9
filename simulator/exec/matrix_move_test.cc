// ldmatrix, stmatrix and movmatrix: thread i gives the address of a row; of matrix m, lane 4r + q
// holds elements 2q and 2q + 1 of row r, or with .trans of column r.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

constexpr unsigned kShuffled[] = {3,  17, 0,  31, 8,  22, 1,  30, 9,  5,  2,  29, 4,  6,  7,  10,
                                  28, 11, 12, 27, 13, 14, 26, 15, 16, 25, 18, 19, 24, 20, 21, 23};

uint16_t half_at(uint64_t address) {
  uint16_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

struct Access {
  std::string text;
  unsigned matrices;
  bool transposed;
  bool is_generic;
};

std::vector<Access> accesses(bool is_load) {
  std::vector<Access> all;
  for (unsigned matrices : {1u, 2u, 4u}) {
    std::string list = matrices == 1   ? "{%r1}"
                       : matrices == 2 ? "{%r1, %r2}"
                                       : "{%r1, %r2, %r3, %r4}";
    for (const char* trans : {"", ".trans"}) {
      for (const char* space : {".shared", ".shared::cta", ""}) {
        bool is_generic = *space == 0;
        std::string address = is_generic ? "[%rd0+32]" : "[%r0+32]";
        all.push_back({fmt::format("{}matrix.sync.aligned.m8n8.x{}{}{}.b16 {}, {};",
                                   is_load ? "ld" : "st", matrices, trans, space,
                                   is_load ? list : address, is_load ? address : list),
                       matrices, *trans != 0, is_generic});
      }
    }
  }
  return all;
}

/// Points each lane that counts at a row of its own, the others nowhere.
void set_rows(MemoryRig& rig, const Access& access) {
  LaneValues addresses;
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint64_t offset = lane < access.matrices * 8 ? 64 + kShuffled[lane] * 48 : 0x7ffffff1;
    addresses.low[lane] = offset + (access.is_generic ? rig.shared() : 0);
  }
  rig.set(access.is_generic ? "%rd0" : "%r0", addresses);
}

uint64_t row_address(const MemoryRig& rig, unsigned matrix, unsigned row) {
  return rig.shared() + 64 + kShuffled[matrix * 8 + row] * 48 + 32;
}

TEST(MatrixMove, Loads) {
  for (const Access& access : accesses(true)) {
    MemoryRig rig(access.text);
    ASSERT_EQ(rig.refusal(), "") << access.text;
    set_rows(rig, access);
    rig.context().timed = true;
    ASSERT_TRUE(rig.run()) << access.text << (rig.fault ? rig.fault->detail : "");
    EXPECT_EQ(rig.context().mask, kAllLanes);
    EXPECT_EQ(rig.context().access.bytes, access.matrices * 128);
    for (unsigned matrix = 0; matrix < access.matrices; ++matrix) {
      LaneValues values = rig.get(fmt::format("%r{}", matrix + 1));
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 2; ++i) {
          unsigned row = lane / 4, column = lane % 4 * 2 + i;
          if (access.transposed) std::swap(row, column);
          EXPECT_EQ(values.low[lane] >> (16 * i) & 0xffff,
                    half_at(row_address(rig, matrix, row) + 2 * column))
              << access.text << " lane " << lane;
        }
      }
    }
  }
}

TEST(MatrixMove, Stores) {
  for (const Access& access : accesses(false)) {
    MemoryRig rig(access.text);
    ASSERT_EQ(rig.refusal(), "") << access.text;
    set_rows(rig, access);
    std::mt19937_64 random(8);
    LaneValues values[4];
    for (unsigned matrix = 0; matrix < access.matrices; ++matrix) {
      for (auto& value : values[matrix].low) value = random() & 0xffffffff;
      rig.set(fmt::format("%r{}", matrix + 1), values[matrix]);
    }
    uint16_t before = half_at(row_address(rig, 0, 0) + 16);
    ASSERT_TRUE(rig.run()) << access.text;
    EXPECT_EQ(rig.wakes.size(), 1u);
    EXPECT_EQ(half_at(row_address(rig, 0, 0) + 16), before) << "16 bytes are written";
    for (unsigned matrix = 0; matrix < access.matrices; ++matrix) {
      for (unsigned row = 0; row < 8; ++row) {
        for (unsigned column = 0; column < 8; ++column) {
          unsigned r = access.transposed ? column : row, q = access.transposed ? row : column;
          EXPECT_EQ(half_at(row_address(rig, matrix, row) + 2 * column),
                    values[matrix].low[r * 4 + q / 2] >> (q % 2 * 16) & 0xffff)
              << access.text;
        }
      }
    }
  }
}

TEST(MatrixMove, MovesTransposed) {
  MemoryRig rig("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;");
  LaneValues values;
  std::mt19937_64 random(8);
  for (auto& value : values.low) value = random() & 0xffffffff;
  rig.set("%r2", values);
  ASSERT_TRUE(rig.run());
  LaneValues moved = rig.get("%r1");
  for (unsigned row = 0; row < 8; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      EXPECT_EQ(moved.low[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff,
                values.low[column * 4 + row / 2] >> (row % 2 * 16) & 0xffff);
    }
  }
}

TEST(MatrixMove, RowsMustBeAlignedAndInSharedMemory) {
  MemoryRig rig("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0];");
  rig.set_affine("%r0", 8, 16);
  EXPECT_FALSE(rig.run());
  ASSERT_TRUE(rig.fault);
  EXPECT_EQ(rig.fault->kind, Finding::Kind::kMisaligned);
  EXPECT_EQ(rig.context().mask, kAllLanes);
  rig.set_affine("%r0", MemoryRig::kSharedBytes - 112, 16);
  EXPECT_FALSE(rig.run());
  EXPECT_EQ(rig.fault->kind, Finding::Kind::kOutOfBounds);
  EXPECT_EQ(rig.fault->lane, 7);

  MemoryRig generic("stmatrix.sync.aligned.m8n8.x1.b16 [%rd0], {%r1};");
  generic.set_affine("%r1", 0, 0);
  generic.set_affine("%rd0", generic.allocate(0, 4096), 16);
  EXPECT_FALSE(generic.run());
  ASSERT_TRUE(generic.fault);
  EXPECT_EQ(generic.fault->kind, Finding::Kind::kIllegalAddress);
  EXPECT_TRUE(generic.fault->write);
}

TEST(MatrixMove, RefusesByName) {
  for (const char* text : {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r0];",
                           "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r1}, [%r0];",
                           "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r0], {%r1};"}) {
    EXPECT_NE(MemoryRig(text).refusal().find("needs sm_100a"), std::string::npos) << text;
  }
  for (const char* text : {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1, %r2, %r3}, [%r0];",
                           "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r0];",
                           "ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd0];",
                           "ldmatrix.sync.aligned.m8n8.x1.local.b16 {%r1}, [%rd0];",
                           "stmatrix.sync.m8n8.x1.shared.b16 [%r0], {%r1};",
                           "movmatrix.sync.aligned.m8n8.b16 %r1, %r2;"}) {
    EXPECT_NE(MemoryRig(text).refusal(), "") << text;
  }
}

}  // namespace
}  // namespace cb::sim
