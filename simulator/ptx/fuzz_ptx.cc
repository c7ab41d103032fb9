#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simulator/ptx/module.h"

/// libFuzzer entry: any text gives a module or an error.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  cb::ptx::ParseLimits limits;
  limits.initial_bytes = 1 << 20;
  cb::ptx::parse({reinterpret_cast<const char*>(data), bytes}, limits);
  return 0;
}
