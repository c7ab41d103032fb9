#include "tasks/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "base/yaml.h"

namespace cb::tasks {
namespace {

Suite read_suite(const std::string& path) {
  Yaml yaml = Yaml::load_text(value_or_throw(read_file(path)), path);
  Suite suite;
  suite.name = std::filesystem::path(path).stem().string();
  std::set<std::string> ids;
  std::string identity;
  for (const Yaml& item : yaml.at("tasks").items()) {
    Suite::Entry entry{item.at("id").text(), item.at("hash").text()};
    if (!ids.insert(entry.id).second) throw item.error(fmt::format("{} is listed twice", entry.id));
    identity += fmt::format("{} {}\n", entry.id, entry.hash);
    suite.entries.push_back(std::move(entry));
  }
  if (suite.entries.empty()) throw yaml.at("tasks").error("a suite has at least one task");
  yaml.finish();
  suite.hash = sha256_hex(identity);
  return suite;
}

}  // namespace

Result<Suite> load_suite(const std::string& path) {
  try {
    return read_suite(path);
  } catch (const Error& error) {
    return tl::unexpected<Error>(error);
  }
}

std::vector<Card> cards_of(const Suite& suite, const std::vector<FoundTask>& found) {
  std::vector<Card> cards;
  std::string problems;
  for (const Suite::Entry& entry : suite.entries) {
    auto task = std::find_if(found.begin(), found.end(),
                             [&](const FoundTask& one) { return one.id == entry.id; });
    if (task == found.end()) {
      problems += fmt::format("\n  {}: no such task", entry.id);
    } else if (!task->card) {
      problems += "\n  " + task->card.error().message();
    } else if (task->card->hash != entry.hash) {
      problems += fmt::format("\n  {}: is {} now, was {} in the suite", entry.id, task->card->hash,
                              entry.hash);
    } else {
      cards.push_back(*task->card);
    }
  }
  if (!problems.empty()) {
    throw Error(ErrorCode::kConfig,
                fmt::format("suite {} is not what it was cut from:{}", suite.name, problems));
  }
  return cards;
}

}  // namespace cb::tasks
