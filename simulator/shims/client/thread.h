#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/protocol/protocol.h"

namespace cb::sim::client {

/// `peer_mask` of DeviceInfo has as many bits.
inline constexpr int kMaxDevices = 32;

/// What <<<>>> passes from __cudaPushCallConfiguration to __cudaPopCallConfiguration.
struct CallConfiguration {
  dim3 grid, block;
  size_t dynamic_shared_bytes;
  cudaStream_t stream;
};

/// A host thread: its connection, and the state that CUDA keeps per thread. Plain, so that it can
/// be thread-local without constructors.
struct Thread {
  static constexpr int kMaxConfigurations = 32;
  static constexpr int kMaxContexts = 64;

  int fd = -1;
  uint8_t* staging = nullptr;
  uint32_t id = 0;
  uint64_t sequence = 0;
  bool busy = false;  ///< inside a request; a signal handler must not start another

  bool in_host_function = false;  ///< where CUDA may not be called
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  CallConfiguration configurations[kMaxConfigurations] = {};
  int num_configurations = 0;
  /// The driver API's context stack. A context is its device, plus kMaxDevices times its number
  /// among those that cuCtxCreate made; 0 is the primary one. -1 is "no context".
  int contexts[kMaxContexts] = {};
  int num_contexts = 0;

  bool connected() const { return fd >= 0; }
  /// The device of the current context; 0 as long as none was made current.
  int device() const { return has_context() ? context() % kMaxDevices : 0; }
  int context() const { return num_contexts > 0 ? contexts[num_contexts - 1] : -1; }
  bool has_context() const { return context() >= 0; }
  /// Puts a device's primary context, or any other, on top of the stack.
  void set_device(int device) { set_context(device); }
  void set_context(int context);
};

Thread& this_thread();

/// Descriptors and id of a connection that the daemon made for a thread to come.
struct NewConnection {
  uint32_t thread_id = 0;
  int fd = -1;
  int staging_fd = -1;
};

/// Asks for one, on the calling thread's connection.
cudaError_t request_connection(NewConnection* connection);

/// Makes `connection` that of the calling thread and says hello. Takes both descriptors.
bool adopt_connection(const NewConnection& connection, HelloReply* hello, DeviceInfo* devices);

/// The calling thread, or with `whole_process` the process, ends: says so and closes.
void end_connection(bool whole_process);

/// In the child of a fork: closes every connection of the parent, which must be the only one to
/// hold them, so that its death is seen.
void close_connections_after_fork();

/// Says goodbye for a thread that was never started. Takes both descriptors.
void abandon_connection(const NewConnection& connection);

}  // namespace cb::sim::client
