#pragma once

// Options of the compiler in the driver (CUjit_option; cudaJitOption has the same numbers), and the
// logs that it writes into the program's buffers.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/shims/client/modules.h"

namespace cb::sim::client {

struct JitLog {
  char* text = nullptr;
  size_t capacity = 0;
  void** written = nullptr;  ///< where the number of bytes goes
};

struct JitOptions {
  uint32_t max_registers = 0;
  bool is_verbose = false;
  JitLog info, error;
  void** wall_time = nullptr;  ///< float, milliseconds; of virtual time here
  void** threads = nullptr;    ///< block size that the registers allow
};

/// Reads a program's option list. Options that tune machine code are accepted, as there is none
/// here; cudaErrorNotSupported, with a line on stderr, for those that would change what a program
/// computes or may do, cudaErrorInvalidValue for numbers that mean nothing.
cudaError_t read_jit_options(const int* options, void** values, unsigned count, JitOptions* read);

/// Loads the module as the options say, and fills in their results.
cudaError_t load_module_with(Module* module, const JitOptions& options);

/// Ends a log with `text`, as much of it as fits, and a NUL.
void write_jit_log(const JitLog& log, const char* text);

}  // namespace cb::sim::client
