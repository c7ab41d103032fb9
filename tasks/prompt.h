#pragma once

#include <string>

#include "tasks/card.h"

namespace cb::tasks {

/// The part of every prompt that does not depend on the task: how candidates are run and graded,
/// and the ABI. Providers cache prompts by their prefix, so it comes first and is the same, byte
/// for byte, for every task. `tasks_folder` is our own tasks/. Throws Error(kSystem).
std::string prompt_prefix(const std::string& tasks_folder);

/// What a model is shown for a task: the prefix, the family's header, the task's statement and its
/// starter. Nothing from hidden/ or task.yaml. Throws Error(kSystem).
std::string render_prompt(const Card& card, const std::string& tasks_folder);

}  // namespace cb::tasks
