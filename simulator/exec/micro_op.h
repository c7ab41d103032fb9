#pragma once

// A decoded instruction, and the values it works on.
//
// A warp's register is a slot. Most integer registers of real kernels hold the same value in all
// lanes, or lane i holds base + i * stride; such a slot is kept as {base, stride} and computed
// once per warp instead of 32 times. Only a value that is neither goes to vector storage, one
// array element per lane. So a slot has a Meta (16 bytes, always) and room for a vector (touched
// when needed), and every operation has two paths.
//
// Slots are assigned by liveness. Slots of different widths never share storage: a diverged group
// of lanes writes only its own elements, and lane i must mean the same bytes to every sharer.

#include <cstddef>
#include <cstdint>

namespace cb::sim {

struct Context;
struct MicroOp;

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

/// Picoseconds of virtual time since the start of the job.
using Time = uint64_t;
inline constexpr Time kNever = ~Time{0};

/// How a slot's value is held. `base` is zero-extended from the slot's width; lane i of an affine
/// slot holds base + i * stride modulo 2^width.
struct Meta {
  uint64_t base = 0;
  int32_t stride = 0;
  uint32_t is_vector = 0;

  bool uniform() const { return (static_cast<uint32_t>(stride) | is_vector) == 0; }
};
static_assert(sizeof(Meta) == 16);

/// A register operand: its slot, and where its vector lies in the frame, in units of 64 bytes.
struct Slot {
  uint16_t index = 0;
  uint16_t vector = 0;
};

/// Executes an operation for the active lanes; returns the next operation, or nullptr when the
/// group stops here (Context::stop says why).
using OpFn = const MicroOp* (*)(Context&, const MicroOp*);

/// What the run loop and the decoder must know about an operation besides its handler.
enum OpFlag : uint16_t {
  kOpOrdered = 1,      ///< happens in virtual-time order: strong accesses, atomics, fences, clocks
  kOpMemory = 2,       ///< fills Context::access for the timing model
  kOpControl = 4,      ///< branch, call, return, exit: the handler reads the guard itself
  kOpStrongStore = 8,  ///< handed to Engine::post_store, becomes visible later than it is issued
  kOpSideEffect = 16,  ///< a loop that contains it is not a pure wait: stores, barriers, calls
  kOpGuardNegated = 32,  ///< executes where the guard predicate is false
  kOpBarrier = 64,       ///< may wait for other lanes or warps
  kOpLoad = 128,         ///< results arrive later: destinations are tracked in the scoreboard
  kOpPure = 256,         ///< neither memory nor control: only reads and writes registers
  kOpWaits = 512,        ///< a sign of a wait loop: strong load, atomic, nanosleep, clock
  kOpListSource = 1024,  ///< the slots of the operand list are read (else written, if there are
                         ///< any); with kOpLoad, the first half is written
  kOpRelease = 2048,     ///< takes effect after all earlier accesses of the thread
  kOpAcquire = 4096,     ///< accesses after it wait for it; the SM's L1 is stale
};

/// Sixty-four bytes, one cache line. `d` is the destination, `a` to `c` the sources. For
/// predicate operands the slot index is an index of Context::predicates. Longer operand lists are
/// in FunctionCode::lists.
struct MicroOp {
  OpFn fn = nullptr;
  Slot d, a, b, c;
  uint64_t immediate = 0;  ///< address offset, lookup table, and so on: see the handler
  int16_t guard = -1;      ///< predicate index, -1: always
  uint16_t flags = 0;
  uint16_t stall_cycles = 1;  ///< from the issue of the previous operation to this one's
  uint8_t num_waits = 0;      ///< scoreboard entries in `waits` to wait for
  uint8_t aux = 0;            ///< small parameter of the handler
  uint16_t waits[4] = {};     ///< slot indices that a load may still be filling
  uint32_t list = 0;          ///< first entry in FunctionCode::lists, of list_size
  uint16_t list_size = 0;
  uint32_t target = 0;  ///< branch: index of the operation; memory: its access site
};
static_assert(sizeof(MicroOp) == 64);

}  // namespace cb::sim
