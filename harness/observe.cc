#include "harness/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace cb::harness {
namespace {

constexpr size_t kMaxSourceText = 200;

const build::SourceFile* find_source(const Candidate& candidate, const std::string& path) {
  for (const build::SourceFile& file : candidate.sources) {
    if (path == file.name || path.ends_with("/" + file.name)) return &file;
  }
  return nullptr;
}

void add_source_text(const Candidate& candidate, Json& profile) {
  std::map<std::string, std::vector<std::string>> texts;
  for (Json& kernel : profile.at("kernels")) {
    for (Json& line : kernel.at("lines")) {
      const build::SourceFile* file = find_source(candidate, line.at("file").get<std::string>());
      if (file == nullptr) continue;
      auto [text, is_new] = texts.try_emplace(file->name);
      if (is_new) text->second = split(file->content, '\n');
      auto number = line.at("line").get<size_t>();
      if (number == 0 || number > text->second.size()) continue;
      line["source"] = printable(trim(text->second[number - 1]), kMaxSourceText);
    }
  }
}

void check_case(const ObserveRequest& request, const Platform& platform) {
  std::vector<std::string> known;
  for (const tasks::Case& one : request.card->cases) {
    known.push_back(one.id);
    if (one.id != request.case_id) continue;
    if (one.world_size <= platform.num_devices()) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("case {} needs {} devices and {} has {}; choose another platform",
                            one.id, one.world_size, platform.name(), platform.num_devices()));
  }
  throw Error(ErrorCode::kUsage, fmt::format("{} has no case \"{}\" (known: {})", request.card->id,
                                             request.case_id, fmt::join(known, ", ")));
}

}  // namespace

Observation observe(const Layout& layout, Platform& platform, const ObserveRequest& request,
                    const std::function<void(const std::string&)>& progress) {
  check_case(request, platform);
  ReferenceTimes references(layout);
  Evaluator evaluator(layout, platform, references);
  Request once;
  once.card = request.card;
  once.candidate = request.candidate;
  once.key = request.key;
  once.only_cases = {request.case_id};
  once.with_reference = false;
  once.count_lines = request.profile;
  once.record_timeline = request.timeline;
  Evaluated done = evaluator.evaluate(once, progress);
  Observation seen;
  seen.record = std::move(done.record);
  seen.timeline = std::move(done.timeline);
  if (done.profile.is_null()) return seen;
  seen.profile["task"] = request.card->id;
  seen.profile["case"] = request.case_id;
  seen.profile.update(done.profile);
  add_source_text(*request.candidate, seen.profile);
  return seen;
}

std::string case_to_observe(const results::Record& record) {
  using results::Verdict;
  const results::CaseResult* slowest = nullptr;
  for (const results::CaseResult& one : record.cases) {
    if (!one.measured || one.verdict != Verdict::kPass) continue;
    if (slowest == nullptr || one.time_ps > slowest->time_ps) slowest = &one;
  }
  if (slowest != nullptr) return slowest->id;
  for (const results::CaseResult& one : record.cases) {
    if (one.verdict != Verdict::kPass && one.verdict != Verdict::kSkipped) return one.id;
  }
  return "";
}

}  // namespace cb::harness
