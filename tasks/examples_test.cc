#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "base/yaml.h"

// The example candidates and what is expected of them must fit together; whether the expectations
// come true is a matter of the harness.

namespace cb::tasks {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = COMMBENCH_SOURCE_DIR "/examples/candidates";

struct Expectation {
  std::string verdict;
  std::vector<int64_t> lines;
};

std::map<std::string, Expectation> expectations() {
  const std::vector<std::string> verdicts = {
      "pass",     "wrong_result", "compile_error", "runtime_error", "memory_error", "race",
      "deadlock", "timeout",      "forbidden",     "cheating",      "no_answer"};
  std::map<std::string, Expectation> found;
  Yaml root = Yaml::load_file(kFolder + "/expected.yaml");
  for (const Yaml& node : root.at("candidates").items()) {
    Expectation expectation;
    expectation.verdict = verdicts[node.at("verdict").one_of(verdicts)];
    if (auto also = node.find("also")) also->one_of(verdicts);
    if (auto lines = node.find("lines")) expectation.lines = lines->integers(1);
    if (auto needs = node.find("needs")) {
      needs->one_of({"race-detector"});
      node.at("without").one_of(verdicts);
    }
    for (const char* key : {"reason", "about"}) {
      if (auto text = node.find(key)) text->text();
    }
    if (auto rank = node.find("rank")) rank->integer(0, 7);
    bool first = found.emplace(node.at("file").text(), expectation).second;
    if (!first) throw node.error("listed twice");
  }
  root.finish();
  return found;
}

std::vector<std::string> lines_of(const std::string& file) {
  return split(value_or_throw(read_file(kFolder + "/" + file)), '\n');
}

/// Lines of `a` that are not in `b`, counted with repetition.
size_t lines_missing(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::multiset<std::string> rest(b.begin(), b.end());
  size_t missing = 0;
  for (const std::string& line : a) {
    auto found = rest.find(line);
    if (found == rest.end()) {
      ++missing;
    } else {
      rest.erase(found);
    }
  }
  return missing;
}

TEST(ExampleCandidates, AreListedOneByOne) {
  std::set<std::string> listed;
  for (const auto& [file, expectation] : expectations()) listed.insert(file);
  std::set<std::string> present;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".cu") present.insert(entry.path().filename());
  }
  EXPECT_EQ(listed, present);
}

TEST(ExampleCandidates, BelongToTasks) {
  for (const auto& [file, expectation] : expectations()) {
    std::string task = file.substr(0, file.find('.'));
    EXPECT_TRUE(fs::exists(COMMBENCH_SOURCE_DIR "/tasks/" + task + "/task.yaml")) << file;
  }
}

TEST(ExampleCandidates, EachBugHasATwinThatLacksJustTheBug) {
  std::map<std::string, Expectation> all = expectations();
  size_t bugs = 0;
  for (const auto& [file, expectation] : all) {
    if (expectation.verdict == "pass") continue;
    ++bugs;
    std::string twin = file.substr(0, file.size() - 3) + ".fixed.cu";
    ASSERT_TRUE(all.contains(twin)) << file;
    EXPECT_EQ(all.at(twin).verdict, "pass") << twin;
    std::vector<std::string> wrong = lines_of(file);
    std::vector<std::string> right = lines_of(twin);
    size_t differences = lines_missing(wrong, right) + lines_missing(right, wrong);
    EXPECT_GE(differences, 1u) << file;
    EXPECT_LE(differences, 20u) << file;
  }
  EXPECT_GE(bugs, 24u);
}

TEST(ExampleCandidates, ExpectedLinesHoldCode) {
  for (const auto& [file, expectation] : expectations()) {
    std::vector<std::string> text = lines_of(file);
    for (int64_t line : expectation.lines) {
      ASSERT_LE(line, static_cast<int64_t>(text.size())) << file;
      EXPECT_FALSE(trim(text[static_cast<size_t>(line - 1)]).empty()) << file << ":" << line;
    }
  }
}

}  // namespace
}  // namespace cb::tasks
