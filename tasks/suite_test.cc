#include "tasks/suite.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace cb::tasks {
namespace {

Result<Suite> suite_of(const std::string& text) {
  TempDir folder("suite-");
  write_file(folder.path() + "/s.yaml", text);
  return load_suite(folder.path() + "/s.yaml");
}

TEST(Suite, OursAreWhatTheTasksAre) {
  auto found = find_tasks({COMMBENCH_SOURCE_DIR "/tasks"});
  Suite core = value_or_throw(load_suite(COMMBENCH_SOURCE_DIR "/tasks/suites/core.yaml"));
  EXPECT_EQ(core.name, "core");
  EXPECT_EQ(cards_of(core, found).size(), core.entries.size());
}

TEST(Suite, NamesEveryTaskThatIsNotAsItWas) {
  auto found = find_tasks({COMMBENCH_SOURCE_DIR "/tasks"});
  Suite suite = value_or_throw(
      suite_of("tasks:\n  - {id: ar-oneshot-pull, hash: old}\n  - {id: gone, hash: x}\n"));
  try {
    cards_of(suite, found);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("ar-oneshot-pull: is "), std::string::npos);
    EXPECT_NE(error.message().find("gone: no such task"), std::string::npos);
  }
}

TEST(Suite, RefusesWhatIsNoSuite) {
  for (const char* text : {"tasks: []\n", "tasks:\n  - {id: a}\n", "task: []\n",
                           "tasks:\n  - {id: a, hash: b}\n  - {id: a, hash: c}\n",
                           "tasks:\n  - {id: a, hash: b, level: 1}\n"}) {
    EXPECT_FALSE(suite_of(text)) << text;
  }
}

TEST(Suite, IsAnotherWhenATaskIs) {
  EXPECT_NE(suite_of("tasks:\n  - {id: a, hash: b}\n")->hash,
            suite_of("tasks:\n  - {id: a, hash: c}\n")->hash);
}

}  // namespace
}  // namespace cb::tasks
