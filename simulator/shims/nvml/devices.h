#pragma once

#include "simulator/protocol/protocol.h"
#include "simulator/shims/nvml/nvml.h"

namespace cb::sim::nvml {

inline constexpr int kMaxDevices = 32;

/// kUninitialized outside nvmlInit and nvmlShutdown.
Return ready();
int device_count();
/// The handle of a device, which is no pointer that anybody may follow.
Device* handle_of(int index);
/// -1 for anything that is no handle.
int index_of(const Device* handle);
const DeviceInfo& info_of(int index);

/// Checks the state, the handle and that the result has a place, then gives `body` the device.
template <class Result, class Body>
Return about(const Device* handle, const Result* result, Body body) {
  Return state = ready();
  if (state != kSuccess) return state;
  int index = index_of(handle);
  if (index < 0 || result == nullptr) return kInvalidArgument;
  return body(info_of(index), index);
}

/// Copies text with its NUL; kInsufficientSize when it does not fit.
Return copy_text(const char* text, char* place, unsigned bytes);

/// Says once on stderr that something is not supported, and gives kNotSupported.
Return refuse(const char* name, bool& said);

}  // namespace cb::sim::nvml
