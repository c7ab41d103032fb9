#pragma once

#include <string>
#include <vector>

#include "harness/build/build.h"

namespace cb::harness {

/// Submitted code: one file, or a folder of sources and headers.
struct Candidate {
  std::string name;  ///< as the user knows it
  std::vector<build::SourceFile> sources;
  std::string sha256;  ///< over names and contents

  /// Throws Error(kUsage) where there is nothing to compile.
  static Candidate load(const std::string& path);
};

/// A candidate file of a folder that is scored.
struct CandidateFile {
  std::string path;
  std::string name;  ///< relative to the folder
  std::string task;  ///< the part of the file's name before its first dot
};
/// Every <task-id>[.<name>].cu or .cc below `folder`, sorted by name. Throws Error(kUsage) for a
/// folder that cannot be read.
std::vector<CandidateFile> find_candidates(const std::string& folder);

}  // namespace cb::harness
