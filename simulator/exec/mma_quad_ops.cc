// mma.m8n8k4 on .f16, the form of sm_70: lanes 4q to 4q + 3 and 16 + 4q to 16 +
// 4q + 3 multiply an 8 by 4 with a 4 by 8 matrix of their own, for q from 0
// to 3. Rare, so element by element.

#include <array>

#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/mma_form.h"

namespace cb::sim {
namespace {

using ptx::Type;

constexpr unsigned kSize = 8;
constexpr unsigned kDepth = 4;

/// Bits of MicroOp::aux.
constexpr uint8_t kRowA = 1, kRowB = 2, kHalfC = 4, kHalfD = 8;

struct Place {
  unsigned row, column;
};

/// Of element `index` of an accumulator in lane `lane`.
Place place_of(unsigned lane, unsigned index, bool half) {
  unsigned upper = lane / 16 * 4;
  if (half) return {upper + lane % 4, index};
  return {upper + (lane & 1) + (index & 2), (index & 4) + (lane & 2) + (index & 1)};
}

float element_of(const uint32_t* const* words, unsigned lane, unsigned index) {
  auto bits = static_cast<uint16_t>(words[index / 2][lane] >> (index % 2 * 16));
  return _cvtsh_ss(bits);
}

struct QuadTile {
  float a[kSize][kDepth];
  float b[kDepth][kSize];
  float d[kSize][kSize];
};

void load_quad(const uint32_t* const* a, const uint32_t* const* b, const uint32_t* const* c,
               uint8_t aux, unsigned quad, QuadTile& tile) {
  for (unsigned i = 0; i < 8; ++i) {
    unsigned lane = quad * 4 + i % 4 + i / 4 * 16;
    unsigned upper = i / 4 * 4;
    for (unsigned index = 0; index < kDepth; ++index) {
      float of_a = element_of(a, lane, index), of_b = element_of(b, lane, index);
      ((aux & kRowA) != 0 ? tile.a[i][index] : tile.a[upper + index][i % 4]) = of_a;
      ((aux & kRowB) != 0 ? tile.b[i % 4][upper + index] : tile.b[index][i]) = of_b;
    }
    for (unsigned index = 0; index < kSize; ++index) {
      Place at = place_of(lane, index, (aux & kHalfC) != 0);
      tile.d[at.row][at.column] =
          (aux & kHalfC) != 0 ? element_of(c, lane, index) : std::bit_cast<float>(c[index][lane]);
    }
  }
}

void store_quad(const QuadTile& tile, uint8_t aux, unsigned quad, uint32_t (*out)[kLanes]) {
  for (unsigned i = 0; i < 8; ++i) {
    unsigned lane = quad * 4 + i % 4 + i / 4 * 16;
    for (unsigned index = 0; index < kSize; ++index) {
      Place at = place_of(lane, index, (aux & kHalfD) != 0);
      float value = tile.d[at.row][at.column];
      if ((aux & kHalfD) == 0) {
        out[index][lane] = value != value ? 0x7fffffff : std::bit_cast<uint32_t>(value);
        continue;
      }
      uint32_t bits = value != value ? 0x7fff : _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
      uint32_t& word = out[index / 2][lane];
      word = index % 2 == 0 ? bits : word | bits << 16;
    }
  }
}

const MicroOp* mma_quad_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  unsigned num_d = (op->aux & kHalfD) != 0 ? 4 : 8;
  unsigned num_c = (op->aux & kHalfC) != 0 ? 4 : 8;
  const Slot* slots = list_of(c, op);
  FragmentWords<uint32_t, 2> a(c, slots + num_d, 2);
  FragmentWords<uint32_t, 2> b(c, slots + num_d + 2, 2);
  FragmentWords<uint32_t, 8> addend(c, slots + num_d + 4, num_c);
  uint32_t result[8][kLanes];
  for (unsigned quad = 0; quad < 4; ++quad) {
    QuadTile tile;
    load_quad(a.words(), b.words(), addend.words(), op->aux, quad, tile);
    for (unsigned row = 0; row < kSize; ++row) {
      for (unsigned column = 0; column < kSize; ++column) {
        for (unsigned k = 0; k < kDepth; ++k) {
          tile.d[row][column] =
              __builtin_fmaf(tile.a[row][k], tile.b[k][column], tile.d[row][column]);
        }
      }
    }
    store_quad(tile, op->aux, quad, result);
  }
  alignas(64) uint32_t sink[kLanes];
  for (unsigned i = 0; i < num_d; ++i) {
    std::memcpy(result_lanes<uint32_t>(c, slots[i], sink), result[i], sizeof result[i]);
  }
  charge_tensor(c, op, {.macs = 4 * kSize * kSize * kDepth}, num_d);
  return op + 1;
}

}  // namespace

std::optional<Result<OpSpec>> find_quad_mma(OpQuery& query) {
  bool whole = query.take("sync") && query.take("aligned") && query.take("m8n8k4");
  OpSpec spec;
  for (uint8_t is_row : {kRowA, kRowB}) {
    // The first of two equal words is A's.
    std::string_view order = query.next();
    whole = whole && (order == "row" || order == "col") && query.take(order);
    if (order == "row") spec.aux |= is_row;
  }
  auto take_accumulator = [&](uint8_t half) {
    if (query.next() == "f16") {
      spec.aux |= half;
      return query.take("f16");
    }
    return query.next() == "f32" && query.take("f32");
  };
  whole = whole && take_accumulator(kHalfD) && query.take("f16") && query.take("f16") &&
          take_accumulator(kHalfC);
  bool narrows = (spec.aux & kHalfD) != 0 && (spec.aux & kHalfC) == 0;
  if (!whole || narrows) return query.refuse_modifiers();
  spec.fn = mma_quad_op;
  spec.flags = kOpBarrier | kOpLoad | kOpListSource;
  const std::pair<unsigned, bool> operands[] = {{(spec.aux & kHalfD) != 0 ? 4 : 8, true},
                                                {2, false},
                                                {2, false},
                                                {(spec.aux & kHalfC) != 0 ? 4 : 8, false}};
  size_t index = 0;
  for (auto [count, is_destination] : operands) {
    if (auto problem = add_fragment(query, spec, index++, count, Type::kB32, is_destination)) {
      return query.refuse(*problem);
    }
  }
  return query.finish(std::move(spec), 4);
}

}  // namespace cb::sim
