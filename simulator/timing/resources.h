#pragma once

// What accesses and copies wait for besides their own latency: issue slots, caches, HBM, links.
// Every resource is a rate in windows of time, so that requests need not arrive in the order of
// their times: a warp may run ahead of another by a bounded slack.

#include <cstdint>
#include <memory>

#include "simulator/exec/context.h"
#include "simulator/timing/profile.h"

namespace cb::sim {

/// Who transfers a copy.
enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kWithinDevice, kPeer, kHostToHost };

/// The resources of the whole cluster.
class Resources {
 public:
  explicit Resources(const Profile& profile);
  ~Resources();

  /// An instruction's claim on its scheduler: returns when the last of `slots` issue slots that
  /// start at `t` is over. `warp_slot` is the warp's place on the SM.
  Time issue(int device, uint32_t sm, uint32_t warp_slot, Time t, uint32_t slots);

  /// A matrix instruction on the tensor core of a scheduler.
  struct TensorWork {
    uint64_t macs = 0;       ///< multiply-adds
    uint32_t bits = 16;      ///< of an element; 64: .f64
    bool warpgroup = false;  ///< wgmma
  };
  struct TensorTime {
    Time started = 0;  ///< when the tensor core takes it
    Time done = 0;     ///< when its results can be used
  };
  TensorTime tensor(int device, uint32_t sm, uint32_t warp_slot, Time t, const TensorWork& work);

  struct Charge {
    Time issued = 0;   ///< when the SM's load-store unit took the whole access
    Time done = 0;     ///< load, atomic: result in registers; store: visible where it goes
    Time reached = 0;  ///< when the access meets memory: the moment a strong one takes effect
  };
  /// One warp-wide access of a warp on SM `sm` of `device`, issued at `t`. Weak loads look into L1
  /// and L2; strong ones go to the memory that holds the address.
  Charge access(int device, uint32_t sm, Time t, const MemoryAccess& access);

  /// A multimem operation on `num_members` copies; access() takes one on all devices of the node.
  Charge multicast(int device, uint32_t sm, Time t, const MemoryAccess& access, int num_members);

  /// What the copy engine of an SM (TMA) moves between its shared memory and the memory that
  /// `access` describes: no load-store unit and no L1. `issued`: a store's source was read.
  Charge bulk(int device, uint32_t sm, Time t, const MemoryAccess& access);

  /// When bytes sent from one SM are in the shared memory of another of its cluster.
  Time within_cluster(int device, uint32_t from_sm, uint32_t to_sm, Time t, uint64_t bytes);

  /// A copy (DMA) of `bytes` that starts at `t`: when it is over. Devices are global numbers, -1
  /// host. What is copied in one call keeps its links busy until it is over. Long copies that are
  /// to share links with others are charged piece by piece, each when the one before is over.
  static constexpr uint64_t kCopyPieceBytes = 256 << 10;
  Time copy(CopyKind kind, int source_device, int target_device, Time t, uint64_t bytes);
  /// Filling memory of a device.
  Time fill(int device, Time t, uint64_t bytes);

  /// Forgets what an SM's L1 holds: a kernel starts on it, or an acquire or fence executed there.
  void invalidate_l1(int device, uint32_t sm);

  /// Bytes that crossed NVLink from device to device, for the record's audit.
  uint64_t link_bytes(int from, int to) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cb::sim
