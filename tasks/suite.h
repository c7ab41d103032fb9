#pragma once

#include <string>
#include <vector>

#include "tasks/card.h"

namespace cb::tasks {

/// A frozen list of tasks: what is scored together. A task that changed since is another task.
struct Suite {
  struct Entry {
    std::string id;
    std::string hash;  ///< Card::hash when the suite was cut
  };
  std::string name;
  std::vector<Entry> entries;
  std::string hash;  ///< over the entries: the identity of the suite
};

/// tasks/suites/<name>.yaml: `tasks`, a list of {id, hash}. The Error(kConfig) starts with file and
/// line.
Result<Suite> load_suite(const std::string& path);

/// The cards of a suite, in its order. Throws Error(kConfig) that names every task that is missing,
/// broken or changed.
std::vector<Card> cards_of(const Suite& suite, const std::vector<FoundTask>& found);

}  // namespace cb::tasks
