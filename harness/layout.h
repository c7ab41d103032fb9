#pragma once

#include <string>

namespace cb::harness {

/// Where the parts of this checkout and its build are.
struct Layout {
  std::string tasks_folder;
  std::string reference_folder;
  std::string profiles_folder;
  std::string host_program;
  std::string rank_program;
  std::string simulator_program;
  std::string bench_program;
  std::string library_folder;  ///< the simulator's CUDA libraries
  std::string cache_folder;    ///< empty: no cache

  static Layout of_this_build();
};

}  // namespace cb::harness
