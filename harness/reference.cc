#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "harness/evaluator.h"

namespace cb::harness {
namespace {

namespace fs = std::filesystem;

std::optional<ReferenceTimes::CaseTimes> read_times(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return std::nullopt;
  Result<Json> json = parse_json(*text, path);
  if (!json || !json->is_object()) return std::nullopt;
  ReferenceTimes::CaseTimes times;
  for (const auto& [id, time] : json->items()) {
    if (!time.is_number_unsigned()) return std::nullopt;
    times[id] = time.get<uint64_t>();
  }
  return times;
}

// Written under a name of its own first: another process may do the same.
void write_times(const std::string& path, const ReferenceTimes::CaseTimes& times) {
  static std::atomic<unsigned> counter{0};
  Json json = Json::object();
  for (const auto& [id, time] : times) json[id] = time;
  fs::create_directories(fs::path(path).parent_path());
  std::string own = fmt::format("{}.{}-{}", path, ::getpid(), counter++);
  write_file(own, dump_json(json) + "\n");
  fs::rename(own, path);
}

}  // namespace

Candidate load_reference(const Layout& layout, const tasks::Card& card) {
  std::string folder = layout.reference_folder + "/" + card.id;
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kUsage, fmt::format("{} has no reference in {}", card.id, folder));
  }
  return Candidate::load(folder);
}

std::string ReferenceTimes::cache_path(const tasks::Card& card, const Platform& platform,
                                       const RunKey& key, const Candidate& reference) const {
  if (layout_.cache_folder.empty()) return "";
  std::string identity =
      fmt::format("{} {} {} {} {} {}", card.hash, reference.sha256, platform.name(),
                  platform.profile_hash(), platform.simulator_hash(), key.hex());
  return fmt::format("{}/reference/{}.json", layout_.cache_folder, sha256_hex(identity));
}

ReferenceTimes::CaseTimes ReferenceTimes::get(
    const tasks::Card& card, const Platform& platform, const RunKey& key,
    const std::function<results::Record(const Candidate&)>& measure) {
  std::unique_lock<std::mutex> all(mutex_);
  Entry& entry = entries_[card.folder + " " + key.hex()];
  all.unlock();
  std::lock_guard<std::mutex> one(entry.mutex);
  if (entry.times) return *entry.times;
  if (!fs::is_directory(layout_.reference_folder + "/" + card.id)) {
    entry.times.emplace();
    return {};
  }
  Candidate reference = load_reference(layout_, card);
  std::string path = cache_path(card, platform, key, reference);
  if (!path.empty()) entry.times = read_times(path);
  if (entry.times) return *entry.times;
  results::Record record = measure(reference);
  entry.times.emplace();
  if (record.verdict != results::Verdict::kPass) return {};
  for (const results::CaseResult& result : record.cases) {
    if (result.measured && result.time_ps > 0) (*entry.times)[result.id] = result.time_ps;
  }
  if (!path.empty()) write_times(path, *entry.times);
  return *entry.times;
}

}  // namespace cb::harness
