// Runs the command lines of *.test files in this folder and compares what they print.
//
//   # comment
//   $ arguments of commbench, separated by blanks; {source} is the checkout, {tmp} an empty folder
//   exit N
//   stdout REGEX     a line of stdout matches (ECMAScript, anywhere in the line)
//   stdout! REGEX    no line does
//   stderr REGEX     the same for stderr
//   json             stdout is one JSON document
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"

namespace cb {
namespace {

namespace fs = std::filesystem;

class CliFile : public ::testing::TestWithParam<std::string> {
 protected:
  std::string filled(std::string text) const {
    text = std::regex_replace(text, std::regex(R"(\{source\})"), COMMBENCH_SOURCE_DIR);
    return std::regex_replace(text, std::regex(R"(\{tmp\})"), folder_.path());
  }

  void run(const std::string& line) {
    ProcessOptions options;
    options.argv = {COMMBENCH_BINARY_DIR "/bin/commbench"};
    for (const std::string& word : split(trim(filled(line)), ' ')) {
      if (!word.empty()) options.argv.push_back(word);
    }
    options.env = environment_subset({"PATH", "HOME", "CUDA_HOME"});
    options.working_folder = folder_.path();
    done_ = run_process(options, 60'000);
    ASSERT_FALSE(done_.timed_out) << line;
  }

  bool printed(const std::string& text, const std::string& pattern) const {
    std::vector<std::string> lines = split(text, '\n');
    std::regex regex(filled(pattern));
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return std::regex_search(line, regex); });
  }

  void check(const std::string& word, const std::string& rest) {
    if (word == "exit") {
      EXPECT_EQ(done_.status.code, std::stoi(rest)) << done_.status.describe();
    } else if (word == "stdout") {
      EXPECT_TRUE(printed(done_.standard_output, rest)) << rest;
    } else if (word == "stdout!") {
      EXPECT_FALSE(printed(done_.standard_output, rest)) << rest;
    } else if (word == "stderr") {
      EXPECT_TRUE(printed(done_.standard_error, rest)) << rest;
    } else if (word == "json") {
      EXPECT_TRUE(parse_json(done_.standard_output, "stdout"));
    } else {
      FAIL() << "unknown word \"" << word << "\"";
    }
  }

  TempDir folder_{"commbench-cli"};
  CompletedProcess done_;
};

TEST_P(CliFile, DoesAsItSays) {
  std::string path = std::string(COMMBENCH_SOURCE_DIR "/tests/cli/") + GetParam() + ".test";
  std::vector<std::string> lines = split(value_or_throw(read_file(path)), '\n');
  std::string command;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.empty() || line[0] == '#') continue;
    SCOPED_TRACE(fmt::format("{}.test:{}: {}\n{}{}", GetParam(), i + 1, command,
                             done_.standard_output, done_.standard_error));
    if (line[0] == '$') {
      command = line;
      run(line.substr(1));
      continue;
    }
    size_t blank = line.find(' ');
    check(line.substr(0, blank), blank == line.npos ? "" : line.substr(blank + 1));
  }
}

std::vector<std::string> test_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(COMMBENCH_SOURCE_DIR "/tests/cli")) {
    if (entry.path().extension() == ".test") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cli, CliFile, ::testing::ValuesIn(test_files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cb
