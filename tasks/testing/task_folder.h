#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "tasks/card.h"

/// For tests: task folders on disk, and everything that the ranks of one step are given.
namespace cb::tasks::testing {

/// A task folder with the given files; missing pieces get valid defaults.
class TaskFolder {
 public:
  /// `cases` is the text below `cases:`; `parameters` the text below `parameters:`.
  TaskFolder(const std::string& family, const std::string& parameters, const std::string& cases,
             const std::string& buffers = "symmetric");

  const std::string& parent() const { return parent_.path(); }
  std::string path() const { return parent_.path() + "/sample"; }
  void write(const std::string& name, const std::string& text) const;
  /// Replaces `from`, which must occur, in one of the files.
  void replace(const std::string& name, const std::string& from, const std::string& to) const;
  /// The card, or throws its error.
  Card load() const;

 private:
  TempDir parent_{"commbench-tasks"};
};

/// Plans of all ranks for one step of a case.
struct StepOfAllRanks {
  StepOfAllRanks(const Card& card, const Case& test_case, const RunKey& key, int step);

  const Case& test_case;
  StepKey key;
  std::vector<StepPlan> plans;

  std::vector<std::byte> input(int rank, int call) const;
  /// Poison as the grader writes it over the region of an output.
  std::vector<std::byte> poison_of(int rank, const Region& region) const;
};

RunKey fixed_key();

}  // namespace cb::tasks::testing
