#pragma once

#include <cuda_runtime_api.h>

#include "simulator/protocol/protocol.h"

namespace cb::sim::client {

/// Value of a device attribute; false when the number means nothing. cudaDeviceAttr and
/// CUdevice_attribute share their numbers, and those that only the driver names are answered too.
bool device_attribute(const DeviceInfo& device, int attribute, int* value);

cudaDeviceProp device_properties(const DeviceInfo& device);

/// Domain, bus and device of "0000:1b:00.0", also without domain or function. False for other text.
bool parse_pci_bus_id(const char* text, int* domain, int* bus, int* device);

}  // namespace cb::sim::client
