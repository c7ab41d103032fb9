#pragma once

#include <string>
#include <vector>

#include "sandbox/jail.h"

/// Turns the source text of a candidate into a shared library: nvcc in a jail, then checks that
/// read the result and never load it. Nothing that a compiler wrote is executed or opened by name
/// on the trusted side.
namespace cb::build {

/// One file of a candidate. `name` is a relative path; .cu and .cc files are compiled, .cuh, .h
/// and .hpp files are there to be included.
struct SourceFile {
  std::string name;
  std::string content;
};

struct BuildRequest {
  std::vector<SourceFile> sources;
  std::string target = "compute_90a";           ///< virtual architecture of the profile
  std::vector<std::string> links;               ///< "cuda", "nccl", "ibverbs", "nvrtc"
  std::vector<std::string> forbidden_includes;  ///< patterns as in `mpi*.h`, of the card
  std::vector<std::string> forbidden_symbols;   ///< patterns as in `ncclAll*`, of the card
  unsigned box_slot = 0;                        ///< see JailSpec
};

/// Where the tools are, and what a build may use. Part of no verdict.
struct BuildTools {
  std::string cuda_folder;     ///< with bin/nvcc
  std::string include_folder;  ///< with commbench/task.h
  std::string cache_folder;    ///< empty: no cache
  JailLimits limits;
  int timeout_ms = 60'000;

  /// This checkout's tools: $CUDA_HOME or the toolkit of the build; $COMMBENCH_CACHE_DIR,
  /// $XDG_CACHE_HOME/commbench or ~/.cache/commbench.
  static BuildTools of_this_machine();
};

enum class BuildOutcome {
  kOk,
  kCompileError,  ///< the log says why
  kForbidden,     ///< `reason` names what and where
  kLimit,         ///< `limit` says which; the compiler used up what it may
  kTimeout,
};
const char* to_string(BuildOutcome outcome);

struct BuildResult {
  BuildOutcome outcome = BuildOutcome::kOk;
  LimitHit limit = LimitHit::kNone;
  std::string reason;   ///< one line for people; empty for kOk
  std::string log;      ///< of the compiler, with the candidate's own file names; untrusted text
  std::string library;  ///< the bytes of the library; kOk only
  std::vector<std::string> fatbin_sha256;  ///< of the device code of each .cu file, sorted
  double wall_ms = 0;                      ///< of this call
  bool cached = false;
  std::string assurance;  ///< of the jail that compiled, see JailOutcome
};

/// Builds one candidate, or takes the result of an identical earlier build. Throws Error(kRefused)
/// without a jail and Error(kSystem) when the machine, not the candidate, is at fault.
BuildResult build_candidate(const BuildRequest& request, const BuildTools& tools);

}  // namespace cb::build
