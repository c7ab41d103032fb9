#include "simulator/check/finding.h"

namespace cb::sim {

const char* to_string(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kOutOfBounds:
      return "out_of_bounds";
    case Finding::Kind::kUseAfterFree:
      return "use_after_free";
    case Finding::Kind::kNotPermitted:
      return "not_permitted";
    case Finding::Kind::kReadOnly:
      return "read_only";
    case Finding::Kind::kEarlyAccess:
      return "early_access";
    case Finding::Kind::kMisaligned:
      return "misaligned";
    case Finding::Kind::kIllegalAddress:
      return "illegal_address";
    case Finding::Kind::kTrap:
      return "trap";
    case Finding::Kind::kAssert:
      return "assert";
    case Finding::Kind::kUnsupported:
      return "unsupported";
    case Finding::Kind::kIllegalInstruction:
      return "illegal_instruction";
    case Finding::Kind::kBarrierDivergence:
      return "barrier_divergence";
    case Finding::Kind::kStackOverflow:
      return "stack_overflow";
    case Finding::Kind::kLimit:
      return "limit";
  }
  return "unknown";
}

// Values of cudaError_t (driver_types.h of the CUDA Toolkit).
int cuda_error_of(Finding::Kind kind) {
  constexpr int kMemoryAllocation = 2;
  constexpr int kIllegalAddress = 700;
  constexpr int kAssert = 710;
  constexpr int kIllegalInstruction = 715;
  constexpr int kMisalignedAddress = 716;
  constexpr int kLaunchFailure = 719;
  constexpr int kNotSupported = 801;
  switch (kind) {
    case Finding::Kind::kMisaligned:
      return kMisalignedAddress;
    case Finding::Kind::kAssert:
      return kAssert;
    case Finding::Kind::kTrap:
    case Finding::Kind::kStackOverflow:
    case Finding::Kind::kBarrierDivergence:
      return kLaunchFailure;
    case Finding::Kind::kIllegalInstruction:
      return kIllegalInstruction;
    case Finding::Kind::kUnsupported:
      return kNotSupported;
    case Finding::Kind::kLimit:
      return kMemoryAllocation;
    default:
      return kIllegalAddress;
  }
}

}  // namespace cb::sim
