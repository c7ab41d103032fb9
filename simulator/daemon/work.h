#pragma once

// Work in streams: what cannot start before other work is done. An item knows its successors; a
// stream only remembers its last item, so that order is kept by counting unfinished predecessors.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

struct HostProcess;
struct Stream;

struct Work {
  enum class Kind : uint8_t {
    kKernel,
    kCopy,
    kFill,
    kRecord,
    kWait,
    kHostFunction,
    kStreamMemory,
    kMemory,
  };
  Kind kind = Kind::kKernel;
  HostProcess* owner = nullptr;  ///< nullptr once its process is gone
  uint64_t number = 0;           ///< of the owner's work
  int device = 0;                ///< global number
  Time ready = 0;                ///< not before: enqueued, and its way to the device
  Time gap = 0;                  ///< after the end of the stream's last kernel or copy
  uint32_t unmet = 0;            ///< predecessors that are not done
  uint64_t staged_bytes = 0;     ///< of the owner's quota
  bool done = false;
  Time begun = 0;
  Time end = 0;
  std::shared_ptr<Stream> stream;
  std::string what;     ///< "kernel reduce", "copy of 4 MiB", for people
  std::string details;  ///< shapes or routes as JSON, where a timeline is recorded
  /// Starts it; called once, when nothing is unmet. Ends by finish().
  std::function<void(const std::shared_ptr<Work>&, Time start)> begin;
  std::vector<std::shared_ptr<Work>> successors;
  /// Called when it ends by cancel().
  std::function<void(const std::shared_ptr<Work>&)> on_cancel;
  std::string waits_for;  ///< what a stream memory operation waits for, for a deadlock's report

  // Host functions.
  uint64_t token = 0;             ///< the process's name for it
  bool runs_after_error = false;  ///< a callback is called even if its context is broken

  // Kernels that overlap: programmatic dependent launch.
  bool may_overlap = false;       ///< with the kernel before it in its stream
  std::shared_ptr<Work> primary;  ///< that kernel, if they do
  bool lets_dependents_start = false;
  Time let_at = 0;
  std::vector<std::shared_ptr<Work>> dependents;  ///< those whose primary it is
  uint64_t run = 0;                               ///< the engine's number of a kernel; 0: none yet

  bool is_device_work() const {
    return kind == Kind::kKernel || kind == Kind::kCopy || kind == Kind::kFill;
  }
};

using WorkList = std::vector<std::shared_ptr<Work>>;
inline bool all_done(const WorkList& list) {
  for (const auto& work : list) {
    if (!work->done) return false;
  }
  return true;
}

struct Stream {
  uint64_t id = 0;
  int device = 0;  ///< global number
  bool non_blocking = false;
  bool is_null = false;
  int32_t priority = 0;
  std::shared_ptr<Work> last;  ///< the item enqueued last
  Time last_work_end = 0;      ///< of its kernels, copies and fills
};

/// A CUDA event; shared between processes by IPC.
struct Event {
  int device = 0;  ///< global number
  uint32_t flags = 0;
  int rank = 0;                  ///< whose process made it
  std::shared_ptr<Work> record;  ///< what it recorded last; nullptr: nothing
};

}  // namespace cb::sim
