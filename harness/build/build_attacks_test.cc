#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "harness/build/build.h"

namespace cb::build {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSecret = "SECRET_TOKEN_4711";
constexpr const char* kSecretFile = "/tmp/commbench-planted-secret";
constexpr const char* kLoadedFile = "/tmp/commbench-build-loaded";

struct Attack {
  std::string name;
  BuildRequest request;
  BuildTools tools = BuildTools::of_this_machine();
  std::vector<std::string> outcomes;
  std::string reason;
  std::string log_lacks;
};

void apply_option(Attack& attack, const std::string& option) {
  std::vector<std::string> parts = split(option, '=');
  uint64_t value = std::stoull(parts.at(1));
  if (parts[0] == "memory_mib") {
    attack.tools.limits.memory_bytes = value << 20;
  } else if (parts[0] == "file_mib") {
    attack.tools.limits.file_bytes = value << 20;
  } else if (parts[0] == "timeout_ms") {
    attack.tools.timeout_ms = static_cast<int>(value);
  } else {
    ADD_FAILURE() << attack.name << ": unknown option " << option;
  }
}

void read_expectations(Attack& attack, const std::string& content) {
  for (const std::string& line : split(content, '\n')) {
    size_t colon = line.find(": ");
    if (!line.starts_with("// ") || colon == std::string::npos) return;
    std::string key = line.substr(3, colon - 3);
    std::string value = line.substr(colon + 2);
    if (key == "expect") attack.outcomes = split(value, '|');
    if (key == "reason") attack.reason = value;
    if (key == "log-lacks") attack.log_lacks = value;
    if (key == "link") attack.request.links.push_back(value);
    if (key == "forbid-include") attack.request.forbidden_includes.push_back(value);
    if (key == "forbid-symbol") attack.request.forbidden_symbols.push_back(value);
    if (key == "option") apply_option(attack, value);
  }
}

Attack load(const fs::path& path) {
  Attack attack;
  attack.name = path.filename();
  attack.tools.cache_folder.clear();
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } else {
    files.push_back(path);
  }
  fs::path root = fs::is_directory(path) ? path : path.parent_path();
  for (const fs::path& file : files) {
    std::string content = value_or_throw(read_file(file.string()));
    read_expectations(attack, content);
    attack.request.sources.push_back({file.lexically_relative(root).string(), content});
  }
  return attack;
}

std::vector<std::string> attack_paths() {
  std::vector<std::string> paths;
  for (const auto& entry :
       fs::directory_iterator(std::string(COMMBENCH_SOURCE_DIR) + "/tests/attacks/build")) {
    if (entry.path().filename() != "README.md") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class BuildAttackTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ofstream(kSecretFile) << kSecret;
    ::setenv("COMMBENCH_PLANTED", kSecret, 1);
    ::unlink(kLoadedFile);
  }
};

TEST_P(BuildAttackTest, EndsAsExpected) {
  Attack attack = load(GetParam());
  ASSERT_FALSE(attack.outcomes.empty()) << attack.name << " does not say what to expect";
  BuildResult result = build_candidate(attack.request, attack.tools);
  EXPECT_THAT(attack.outcomes, ::testing::Contains(to_string(result.outcome)))
      << result.reason << "\n"
      << printable(result.log, 2000);
  EXPECT_THAT(result.reason, HasSubstr(attack.reason));
  EXPECT_THAT(result.log, Not(HasSubstr(kSecret)));
  EXPECT_EQ(result.library.find(kSecret), std::string::npos);
  if (!attack.log_lacks.empty()) {
    EXPECT_THAT(result.log, Not(HasSubstr(attack.log_lacks)));
  }
  EXPECT_LE(result.log.size(), attack.tools.limits.output_bytes);
  EXPECT_EQ(result.outcome == BuildOutcome::kOk, !result.library.empty());
  EXPECT_NE(::access(kLoadedFile, F_OK), 0) << "the library was loaded by the trusted side";
}

INSTANTIATE_TEST_SUITE_P(Files, BuildAttackTest, ::testing::ValuesIn(attack_paths()),
                         [](const auto& info) {
                           std::string name = fs::path(info.param).stem();
                           return name;
                         });

}  // namespace
}  // namespace cb::build
