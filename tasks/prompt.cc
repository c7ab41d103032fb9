#include "tasks/prompt.h"

#include <fmt/format.h>

#include "base/file.h"

namespace cb::tasks {
namespace {

std::string text_of(const std::string& path) { return value_or_throw(read_file(path)); }

std::string fenced(const std::string& title, const std::string& code) {
  return fmt::format("### {}\n\n```cuda\n{}```\n\n", title, code);
}

}  // namespace

std::string prompt_prefix(const std::string& tasks_folder) {
  return text_of(tasks_folder + "/prompt_intro.md") + "\n" +
         fenced("<commbench/task.h>", text_of(tasks_folder + "/include/commbench/task.h"));
}

std::string render_prompt(const Card& card, const std::string& tasks_folder) {
  std::string header = fmt::format("commbench/families/{}.h", card.family->name());
  return prompt_prefix(tasks_folder) +
         fenced(fmt::format("<{}>", header), text_of(tasks_folder + "/include/" + header)) +
         text_of(card.folder + "/prompt.md") + "\n" +
         fenced("Starter", text_of(card.folder + "/starter.cu"));
}

}  // namespace cb::tasks
