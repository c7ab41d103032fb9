#pragma once

// What is true of the whole host process: whether the simulator is there, what node it simulates,
// and which devices' contexts are broken.

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "simulator/protocol/protocol.h"
#include "simulator/shims/client/thread.h"

namespace cb::sim::client {

enum class Link : int {
  kAbsent,  ///< not started by the simulator, or it refused us
  kUp,
  kLost,    ///< the daemon is gone, or spoke nonsense
  kForked,  ///< a fork of a process that had a connection; CUDA does not work there either
  kEnded,   ///< this process has said goodbye
};

struct Process {
  std::atomic<Link> link{Link::kAbsent};
  HelloReply hello;
  DeviceInfo devices[kMaxDevices];
  /// The error that broke the context of a device, which every later call returns; 0 if none.
  std::atomic<int> sticky[kMaxDevices] = {};
  /// Latest virtual time that any thread of this process has seen.
  std::atomic<uint64_t> last_time_ns{0};
  std::atomic<bool> driver_initialized{false};
  /// The process is saying goodbye: that its threads lose their connections is no news.
  std::atomic<bool> ending{false};
};

extern Process process;

/// Connects the calling thread with the descriptors named in the environment and removes them from
/// it. Without them, or when the daemon refuses, the link stays absent. Runs when the library
/// loads.
void connect_from_environment();

/// Says goodbye for the whole process.
void end_process();

/// Every later call fails with cudaErrorSystemNotReady. The first caller's reason is reported.
void lose_link(const char* reason);

/// cudaSuccess while requests can be made, else the error that explains why not.
cudaError_t link_error();

/// An id for a stream or event, never used before in this process.
uint64_t new_id();

inline int device_count() { return static_cast<int>(process.hello.num_devices); }
inline bool is_device(int device) { return device >= 0 && device < device_count(); }
inline const DeviceInfo& device_info(int device) { return process.devices[device]; }

}  // namespace cb::sim::client
