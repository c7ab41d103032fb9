#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace cb::ptx {

/// One entry of a fat binary: the code of a module for one architecture.
struct FatbinEntry {
  enum class Kind : uint8_t {
    kPtx,    ///< `content` is text, without the padding that follows it
    kCubin,  ///< `content` is an ELF file of SASS
    kOther   ///< such as LTO intermediate code: `content` is empty
  };
  Kind kind = Kind::kOther;
  unsigned arch = 0;           ///< 90 for compute capability 9.0
  char variant = ' ';          ///< 'a' architecture-specific, 'f' family-specific, ' ' neither
  unsigned version_major = 0;  ///< of PTX: the ISA
  unsigned version_minor = 0;
  std::string source_name;  ///< with -lineinfo, else empty
  std::string content;

  /// "PTX for sm_90a", for messages.
  std::string describe() const;
};

struct Fatbin {
  std::vector<FatbinEntry> entries;
};

/// Reads the fat binary that nvcc embeds and `__cudaRegisterFatBinary` gets: containers one after
/// the other. Safe on hostile bytes; more than `max_bytes` of content in all is an error, and so is
/// a compression other than zstd.
Result<Fatbin> read_fatbin(std::span<const std::byte> bytes, size_t max_bytes = size_t{64} << 20);

/// The PTX that the CUDA driver would compile for a device of compute capability `arch` (90): the
/// highest architecture not above it, an 'a' variant only for exactly this one, an 'f' variant only
/// within its family. The error lists what is there.
Result<const FatbinEntry*> select_ptx(const Fatbin& fatbin, unsigned arch);

/// The machine code the driver would load, by the rules of binary compatibility: the same major
/// number, a minor number not above the device's.
Result<const FatbinEntry*> select_cubin(const Fatbin& fatbin, unsigned arch);

}  // namespace cb::ptx
