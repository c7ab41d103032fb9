#include "search/eval/conversation.h"

#include <fmt/format.h>

#include "results/finding_text.h"
#include "search/eval/fence.h"
#include "tasks/prompt.h"

namespace cb::eval {
namespace {

using results::CaseResult;
using results::Record;
using results::Verdict;

constexpr size_t kMaxLogBytes = 4000;
constexpr size_t kMaxFindingBytes = 6000;

/// The cases that count, with their times: how far from the reference each is.
std::string times_of(const Record& record) {
  std::string lines = "size(B)  time(us)  reference(us)  speedup\n";
  for (const CaseResult& result : record.cases) {
    if (!result.measured || result.time_ps == 0) continue;
    auto speedup = result.speedup();
    lines += fmt::format("{}  {:.2f}  {:.2f}  {}\n", result.bytes,
                         static_cast<double>(result.time_ps) / 1e6,
                         static_cast<double>(result.reference_ps) / 1e6,
                         speedup ? fmt::format("{:.2f}", *speedup) : "-");
  }
  return lines;
}

std::string passed(const Record& record) {
  return "Your candidate is correct on every case. Times on those that count:\n\n" +
         fenced(times_of(record), "", kMaxFindingBytes) +
         "\nMake it faster, and keep it correct. Answer with the complete file.\n";
}

}  // namespace

std::string feedback(const Round& round) {
  const Record& record = round.record;
  if (record.verdict == Verdict::kPass) return passed(record);
  std::string text = fmt::format("Your candidate did not pass: {}.\n",
                                 results::outcome_text(record.verdict, record.reason));
  if (record.verdict == Verdict::kNoAnswer && record.finding) {
    text += record.finding->message + "\n";
  } else if (record.verdict == Verdict::kCompileError) {
    text += "The compiler said, as data:\n\n" + fenced(round.build_log, "", kMaxLogBytes);
  } else {
    text += fmt::format("{} of {} cases passed. What was found, as data:\n\n",
                        record.cases_passed(), record.cases.size()) +
            fenced(results::finding_text(record), "", kMaxFindingBytes);
  }
  return text + "\nFind the cause and answer with the complete, repaired file.\n";
}

llm::Request ask(const tasks::Card& card, const std::string& tasks_folder,
                 const std::vector<Round>& rounds) {
  using Role = llm::Message::Role;
  llm::Request request;
  request.system = tasks::prompt_prefix(tasks_folder);
  std::string prompt = tasks::render_prompt(card, tasks_folder);
  request.messages.push_back({Role::kUser, prompt.substr(request.system.size())});
  for (const Round& round : rounds) {
    // Providers refuse an empty message.
    request.messages.push_back(
        {Role::kAssistant, round.reply.empty() ? "(no answer)" : round.reply});
    request.messages.push_back({Role::kUser, feedback(round)});
  }
  return request;
}

}  // namespace cb::eval
