#pragma once

#include <cstdint>

namespace cb::build {

/// Precedes each file in the stream that leaves a build jail, followed by its name and content.
/// The jail is not trusted: whoever reads the stream checks every length.
struct ProductHeader {
  uint32_t name_bytes = 0;
  uint32_t reserved = 0;
  uint64_t content_bytes = 0;
};

}  // namespace cb::build
