#pragma once

// What the simulator says about a program that went wrong.

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

/// Where in a kernel: enough to open the source at the right line.
struct CodePlace {
  std::string kernel;  ///< demangled
  std::string file;    ///< as nvcc's -lineinfo names it; empty: unknown
  uint32_t line = 0;
  std::string instruction;  ///< PTX text, shortened
  uint32_t ptx_line = 0;
  int rank = -1;
  int device = -1;  ///< number on its node
  uint32_t block[3] = {0, 0, 0};
  uint32_t thread[3] = {0, 0, 0};
};

struct Finding {
  enum class Kind : uint8_t {
    kOutOfBounds,
    kUseAfterFree,
    kNotPermitted,
    kReadOnly,
    kEarlyAccess,  ///< inputs or outputs touched while no step ran
    kMisaligned,
    kIllegalAddress,      ///< no allocation is near
    kTrap,                ///< trap instruction
    kAssert,              ///< device-side assert; text in `detail`
    kUnsupported,         ///< an instruction or feature that the simulator does not have
    kIllegalInstruction,  ///< undefined by PTX: bad barrier number, call of no function, ...
    kBarrierDivergence,
    kStackOverflow,
    kLimit,  ///< a quota of the simulator
  };
  Kind kind = Kind::kIllegalAddress;
  Time time_ps = 0;
  CodePlace place;
  std::string detail;  ///< one sentence: what was touched, what was expected
  uint64_t address = 0;
  uint32_t bytes = 0;
  bool write = false;
};
/// "out_of_bounds" and so on: the reason words of verdicts.
const char* to_string(Finding::Kind kind);
/// The cudaError_t that the program sees.
int cuda_error_of(Finding::Kind kind);

/// One waiting group of threads of a deadlock.
struct Waiter {
  CodePlace place;
  uint32_t num_threads = 0;
  std::string
      waits_for;  ///< "input 1 of rank 3 + 64, which holds 0", "barrier 0: 96 of 128 threads"
  uint64_t address = 0;  ///< 0: a barrier
  uint64_t value = 0;    ///< what the address holds
};

}  // namespace cb::sim
