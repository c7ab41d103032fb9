// The libraries as the loader and the linker see them.

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/file.h"
#include "base/process.h"

namespace cb::sim {
namespace {

std::string output_of(std::vector<std::string> argv) {
  ProcessOptions options;
  options.argv = std::move(argv);
  options.output_limit = size_t{4} << 20;
  CompletedProcess process = run_process(options, 60'000);
  EXPECT_TRUE(process.status.success()) << process.standard_error;
  return process.standard_output;
}

std::set<std::string> exported(const std::string& library) {
  std::istringstream lines(output_of({"nm", "-D", "--defined-only", library}));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) names.insert(line.substr(line.rfind(' ') + 1));
  return names;
}

TEST(ShimSymbols, LibcudartExportsAllThatTheToolkitsDoes) {
  std::set<std::string> ours = exported(COMMBENCH_SHIM_CUDART);
  size_t compared = 0;
  for (const std::string& name : exported(COMMBENCH_TOOLKIT_CUDART)) {
    EXPECT_EQ(ours.count(name), 1u) << name;
    ++compared;
  }
  EXPECT_GT(compared, 400u);
}

TEST(ShimSymbols, LibcudaExportsExactlyWhatTheToolkitsStubDoes) {
  EXPECT_EQ(exported(COMMBENCH_SHIM_CUDA),
            exported(COMMBENCH_TOOLKIT_HOME "/lib64/stubs/libcuda.so"));
}

TEST(ShimSymbols, LibnvidiaMlExportsEveryFunctionOfNvml) {
  std::set<std::string> ours = exported(COMMBENCH_SHIM_NVML);
  std::istringstream names(
      value_or_throw(read_file(COMMBENCH_SOURCE_DIR "/simulator/shims/gen/nvml_functions.txt")));
  size_t compared = 0;
  for (std::string name; names >> name; ++compared) EXPECT_EQ(ours.count(name), 1u) << name;
  EXPECT_GT(compared, 400u);
  for (const std::string& name : ours) EXPECT_EQ(name.rfind("nvml", 0), 0u) << name;
}

TEST(ShimSymbols, NothingOfOursOrOfTheCxxLibraryLeaksOut) {
  for (const std::string& name : exported(COMMBENCH_SHIM_CUDART)) {
    EXPECT_NE(name.substr(0, 2), "_Z") << name;
    EXPECT_EQ(name.find("commbench_") == 0, name.find("commbench_sim") == 0) << name;
  }
}

TEST(ShimSymbols, TheLibrariesNeedTheCLibraryOnly) {
  std::istringstream lines(output_of({"readelf", "-d", COMMBENCH_SHIM_CUDART}));
  std::set<std::string> needed;
  for (std::string line; std::getline(lines, line);) {
    size_t open = line.find('[');
    if (line.find("(NEEDED)") == std::string::npos) continue;
    needed.insert(line.substr(open + 1, line.find(']') - open - 1));
  }
  EXPECT_EQ(needed, (std::set<std::string>{"libc.so.6", "ld-linux-x86-64.so.2"}));
}

TEST(ShimSymbols, TheGeneratedTablesAreUpToDate) {
  std::string script = COMMBENCH_SOURCE_DIR "/simulator/shims/gen/generate_tables.py";
  output_of({"python3", script, "--check", "--cuda", COMMBENCH_TOOLKIT_HOME});
}

}  // namespace
}  // namespace cb::sim
