#pragma once

// What a model is asked, round by round.

#include <string>
#include <vector>

#include "results/record.h"
#include "search/llm/completion.h"
#include "tasks/card.h"

namespace cb::eval {

/// One answer and what became of it.
struct Round {
  std::string reply;
  results::Record record;
  std::string build_log;  ///< untrusted
};

/// The question for the next round. Its start is the same, byte for byte, for all tasks (system
/// text), all samples of a task (first message), and all later rounds of a sample, so that a
/// provider's cache can serve it. Logs and findings are fenced: they are a candidate's words.
llm::Request ask(const tasks::Card& card, const std::string& tasks_folder,
                 const std::vector<Round>& rounds);

/// What a model is told about its last candidate.
std::string feedback(const Round& round);

}  // namespace cb::eval
