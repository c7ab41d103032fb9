#pragma once

#include <cuda_runtime_api.h>

#include "simulator/shims/client/launch.h"

namespace cb::sim::client {

/// Puts launch attributes into `request`; those that are not modelled are refused by name unless
/// they ask for the default. CUlaunchAttribute is the same type under another name.
cudaError_t apply_attributes(const cudaLaunchAttribute* attributes, unsigned count,
                             LaunchRequest* request);

}  // namespace cb::sim::client
