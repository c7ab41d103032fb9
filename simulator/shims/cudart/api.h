#pragma once

// What every file of runtime API functions needs. The functions take their prototypes from NVIDIA's
// headers, so that a wrong signature does not compile. `CB_API` at the start of a line marks an
// exported function; gen/generate_tables.py reads these lines to know which symbols are left over
// for stubs.

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/thread.h"

#define CB_API extern "C" __attribute__((visibility("default")))
