#pragma once

// The 64 bits of an mbarrier object in shared memory. PTX leaves the layout open; here it is
//
//   bits  0..19  arrivals that the current phase still waits for
//   bits 20..39  arrivals that each phase expects
//   bits 40..60  bytes that the current phase still waits for, signed: data may come before it is
//                announced
//   bit  61      parity of the current phase
//   bits 62..63  10 in every object that was initialised; neither zeros nor undefined shared memory
//                look like one
//
// The state that mbarrier.arrive returns is the object as it was before.

#include <cstdint>
#include <optional>
#include <string>

namespace cb::sim {

/// What an operation does to an mbarrier.
struct BarrierUpdate {
  uint32_t arrivals = 0;
  uint32_t drops = 0;         ///< arrivals that later phases do not expect any more
  uint32_t added = 0;         ///< arrivals that this phase expects in addition
  uint32_t expect_bytes = 0;  ///< added before the arrivals count
  uint32_t complete_bytes = 0;
  bool may_complete = true;  ///< false: .noComplete, which must leave the phase as it is
};

class BarrierState {
 public:
  static constexpr uint32_t kMaxCount = (1u << 20) - 1;
  static constexpr uint32_t kBytes = 8;

  explicit BarrierState(uint64_t bits) : bits_(bits) {}
  /// `count` is 1 to kMaxCount.
  static BarrierState initial(uint32_t count);
  /// What mbarrier.inval leaves behind.
  static BarrierState invalidated() { return BarrierState(kInvalidated); }

  uint64_t bits() const { return bits_; }
  bool is_valid() const { return bits_ >> 62 == kMark; }
  bool is_invalidated() const { return bits_ == kInvalidated; }
  uint32_t pending() const { return bits_ & kMaxCount; }
  uint32_t expected() const { return bits_ >> 20 & kMaxCount; }
  int32_t outstanding_bytes() const;
  uint32_t parity() const { return bits_ >> 61 & 1; }

  /// Applies an update and completes the phase when nothing is left to wait for. Returns what is
  /// wrong with it; the state is then unchanged.
  std::optional<std::string> apply(const BarrierUpdate& update);

  /// "phase 0, 3 of 4 arrived, 1024 bytes outstanding"
  std::string describe() const;

 private:
  static constexpr uint64_t kMark = 2;
  static constexpr uint64_t kInvalidated = 0x3badbadbadbadbad;

  void set(uint32_t parity, uint32_t pending, uint32_t expected, int64_t bytes);

  uint64_t bits_;
};

}  // namespace cb::sim
