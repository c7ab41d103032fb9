#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cb::build {

/// What a candidate's library says about itself, read as data: it is never loaded, and every
/// offset in it is checked.
struct LibraryFacts {
  std::vector<std::string> undefined;  ///< symbols it wants from others
  std::vector<std::string> exported;   ///< symbols it offers
  /// SHA-256 of each container in its .nv_fatbin section, sorted.
  std::vector<std::string> fatbin_sha256;
  /// Device code outside that section: "a cubin at offset 4096"; empty when there is none.
  std::string stray_device_code;
};

/// Reads a 64-bit x86 ELF shared library. A file that is not one is an Error(kRemote).
Result<LibraryFacts> read_library(std::string_view bytes);

/// SHA-256 of each fatbin container in `bytes`, in order; they hold nothing else but zero padding.
Result<std::vector<std::string>> hash_fatbins(std::string_view bytes);

}  // namespace cb::build
