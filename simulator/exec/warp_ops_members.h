#pragma once

// Member masks of warp-wide operations. Lanes of one group may name different masks, as tiles of a
// warp do: the operation happens when the members of all of them have come together, and then
// separately within each mask.

#include "simulator/exec/engine_port.h"
#include "simulator/exec/lanes.h"
#include "simulator/exec/op_query.h"

namespace cb::sim {

/// The member masks of the active lanes.
class Members {
 public:
  /// Of a slot that holds a mask per lane.
  Members(Context& c, Slot slot) {
    const Meta& meta = c.meta[slot.index];
    if (meta.uniform()) {
      all_ = same_ = static_cast<uint32_t>(meta.base);
      return;
    }
    const uint32_t* masks = read_lanes<uint32_t>(c, slot, room_);
    is_vector_ = true;
    same_ = masks[std::countr_zero(c.mask)];
    bool equal = true;
    for (uint32_t left = c.mask; left != 0; left &= left - 1) {
      uint32_t mask = masks[std::countr_zero(left)];
      all_ |= mask;
      equal &= mask == same_;
    }
    if (equal) {
      is_vector_ = false;
    } else if (masks != room_) {
      std::memcpy(room_, masks, sizeof room_);
    }
  }
  /// One mask for all lanes.
  explicit Members(uint32_t mask) : all_(mask), same_(mask) {}

  uint32_t all() const { return all_; }
  uint32_t of(int lane) const { return is_vector_ ? room_[lane] : same_; }

  /// Calls use(lanes): the active lanes of each mask in turn.
  template <typename Use>
  void for_each_set(uint32_t active, Use&& use) const {
    while (active != 0) {
      uint32_t mask = of(std::countr_zero(active));
      uint32_t lanes = 0;
      for (uint32_t left = active; left != 0; left &= left - 1) {
        int lane = std::countr_zero(left);
        if (of(lane) == mask) lanes |= uint32_t{1} << lane;
      }
      use(lanes);
      active &= ~lanes;
    }
  }

  /// A lane that is not a member of its own mask, or -1.
  int stranger(uint32_t active) const {
    if (!is_vector_) return (active & ~same_) == 0 ? -1 : std::countr_zero(active & ~same_);
    for (uint32_t left = active; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      if ((of(lane) >> lane & 1) == 0) return lane;
    }
    return -1;
  }

 private:
  uint32_t all_ = 0;
  uint32_t same_ = 0;
  bool is_vector_ = false;
  alignas(64) uint32_t room_[kLanes];
};

/// Refuses lanes that are not members; their result would be undefined.
bool check_members(Context& c, const MicroOp* op, const Members& members);

/// Whether all members are there: see gather_lanes.
inline bool gather(Context& c, const MicroOp* op, const Members& members) {
  return check_members(c, op, members) && gather_lanes(c, op, members.all());
}

}  // namespace cb::sim
