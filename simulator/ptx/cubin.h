#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace cb::ptx {

/// What a kernel needs of a multiprocessor, as ptxas found it: `ptxas -v` prints the same.
struct KernelResources {
  std::string name;                  ///< mangled
  unsigned registers = 0;            ///< per thread
  unsigned barriers = 0;             ///< named barriers, of 16
  uint64_t static_shared_bytes = 0;  ///< per block, without what the system reserves
  uint64_t frame_bytes = 0;          ///< local memory per thread of the kernel itself
  uint64_t stack_bytes = 0;          ///< the same with all callees; they are not known if recursive
  uint64_t parameter_bytes = 0;
  unsigned max_threads[3] = {0, 0, 0};       ///< from __launch_bounds__, 0 when absent
  unsigned required_threads[3] = {0, 0, 0};  ///< from .reqntid, 0 when absent
};

/// Reads the kernels of a cubin (ELF as ptxas 13 writes it), in the order of its symbol table. Safe
/// on hostile bytes.
Result<std::vector<KernelResources>> read_cubin_resources(std::span<const std::byte> bytes);

}  // namespace cb::ptx
