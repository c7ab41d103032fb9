#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/build/build.h"

namespace cb::build {

/// Where one source lies in the build jail, below /box/src/.
struct PlacedSource {
  std::string jail_name;     ///< "ring.cu", or "cand_0.cu" for a name that no compiler should see
  std::string display_name;  ///< the candidate's own
};

/// Why these sources cannot be placed (two files of one name, nothing to compile, too much text),
/// or nothing.
std::string why_unplaceable(const std::vector<SourceFile>& sources);
/// How many of the files are compiled rather than included.
size_t compiled_count(const std::vector<SourceFile>& sources);
std::vector<PlacedSource> place_sources(const std::vector<SourceFile>& sources);

/// The complete compiler command, in the jail's paths. Throws Error(kUsage) for an unknown library
/// or target.
std::vector<std::string> compiler_command(const BuildRequest& request,
                                          const std::vector<PlacedSource>& placed);

/// What one run of the compiler left.
struct Compilation {
  CompletedJail jail;
  std::string log;  ///< with the jail's paths replaced by the candidate's names
  /// Products by name: "out.so", "ring.fatbin", "ring.ptx", "ring.cpp1.ii". Empty on failure.
  std::map<std::string, std::string> products;
};

/// Runs the compiler in its jail. Throws Error(kSystem) when the jail or the tools broke down.
Compilation compile(const BuildRequest& request, const std::vector<PlacedSource>& placed,
                    const BuildTools& tools);

}  // namespace cb::build
