#include "harness/layout.h"

#include <filesystem>

#include "harness/build/build.h"

namespace cb::harness {

Layout Layout::of_this_build() {
  const std::string source = COMMBENCH_SOURCE_DIR;
  const std::string binary = COMMBENCH_BINARY_DIR;
  Layout layout;
  layout.tasks_folder = source + "/tasks";
  layout.reference_folder = source + "/reference";
  layout.profiles_folder = source + "/simulator/profiles";
  layout.host_program = binary + "/bin/commbench-host";
  layout.rank_program = binary + "/bin/commbench-rank";
  layout.simulator_program = binary + "/bin/commbench-simd";
  layout.bench_program = binary + "/bin/commbench-sim-bench";
  layout.library_folder = binary + "/lib";
  // Builds have a folder of their own in it.
  std::filesystem::path builds = build::BuildTools::of_this_machine().cache_folder;
  layout.cache_folder = builds.parent_path().string();
  return layout;
}

}  // namespace cb::harness
