#pragma once

// Operations with a rounding direction other than to nearest, done by the processor's own rounding
// control. The handlers read their parameters at run time: these are rare.

#include <immintrin.h>

#include "simulator/exec/alu_query.h"
#include "simulator/exec/float_rules.h"

namespace cb::sim {

/// MicroOp::aux of a directed operation.
inline constexpr uint8_t kDirectedRounding = 3;  ///< mask: a Rounding up to kUp
inline constexpr uint8_t kDirectedFtz = 4;
inline constexpr uint8_t kDirectedSat = 8;

inline uint8_t directed_aux(Rounding rounding, bool ftz, bool sat) {
  return static_cast<uint8_t>(static_cast<uint8_t>(rounding) | (ftz ? kDirectedFtz : 0) |
                              (sat ? kDirectedSat : 0));
}

/// Rounds as given while it exists. Inputs and results must lie in memory that `values` leads to:
/// the compiler knows nothing of rounding modes, and only memory keeps the operations inside.
class RoundingScope {
 public:
  RoundingScope(Rounding rounding, void* values) : values_(values), saved_(_mm_getcsr()) {
    constexpr unsigned kControl[] = {_MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN,
                                     _MM_ROUND_UP};
    unsigned control = kControl[static_cast<size_t>(rounding)];
    _mm_setcsr((saved_ & ~unsigned{_MM_ROUND_MASK}) | control);
    asm volatile("" : : "r"(values_) : "memory");
  }
  ~RoundingScope() {
    asm volatile("" : : "r"(values_) : "memory");
    _mm_setcsr(saved_);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  void* values_;
  unsigned saved_;
};

inline float finish_directed(float raw, const float*, uint8_t aux) {
  float value = (aux & kDirectedSat) != 0 ? saturate(raw) : raw;
  if ((aux & kDirectedFtz) != 0) value = flush(value);
  return value != value ? canonical_nan32() : value;
}
inline double finish_directed(double raw, const double* operands, uint8_t) {
  return propagate_nan(raw, operands[0], operands[1], operands[2]);
}

/// `F::raw(a, b, c)` is one hardware operation on T; the unused sources of a unary or binary one
/// are passed as its first.
template <typename F, typename T, int kSources>
const MicroOp* directed_op(Context& c, const MicroOp* op) {
  struct {
    alignas(64) T in[3][kLanes];
    alignas(64) T out[kLanes];
  } values;
  const Slot slots[] = {op->a, kSources > 1 ? op->b : op->a, kSources > 2 ? op->c : op->a};
  bool uniform = true;
  for (int k = 0; k < 3; ++k) {
    const Meta& meta = c.meta[slots[k].index];
    uniform &= meta.uniform();
    alignas(64) T room[kLanes];
    const T* lanes = read_lanes<T>(c, slots[k], room);
    for (int i = 0; i < kLanes; ++i) {
      bool flushes = std::is_same_v<T, float> && (op->aux & kDirectedFtz) != 0;
      values.in[k][i] = flushes ? static_cast<T>(flush(static_cast<float>(lanes[i]))) : lanes[i];
    }
  }
  {
    RoundingScope scope(static_cast<Rounding>(op->aux & kDirectedRounding), &values);
    int count = uniform ? 1 : kLanes;
    for (int i = 0; i < count; ++i) {
      values.out[i] = F::raw(values.in[0][i], values.in[1][i], values.in[2][i]);
    }
  }
  auto finished = [&](int i) {
    T operands[3] = {values.in[0][i], values.in[1][i], values.in[2][i]};
    return finish_directed(values.out[i], operands, op->aux);
  };
  if (uniform) {
    write_uniform<T>(c, op->d, finished(0));
  } else {
    write_lanes<T>(c, op->d, finished);
  }
  return op + 1;
}

}  // namespace cb::sim
