#include "results/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/random.h"

namespace cb::results {
namespace {

namespace fs = std::filesystem;

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw system_error("make " + path, error.value());
}

// Whether the folder is new; a name that is taken is not an error.
bool make_new_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return true;
  if (errno == EEXIST) return false;
  throw system_error("make " + path);
}

}  // namespace

RunDirectory::RunDirectory(std::string path, std::string id, Json manifest)
    : path_(std::move(path)),
      id_(std::move(id)),
      manifest_(std::make_unique<Json>(std::move(manifest))) {
  records_ = std::make_unique<DurableLog>(path_ + "/records.jsonl");
}

RunDirectory RunDirectory::create(const std::string& parent, Json manifest) {
  make_folders(parent);
  auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  std::tm utc = fmt::gmtime(now);
  for (;;) {
    // Two runs of one second differ in the random part.
    std::string id = fmt::format("{:%Y%m%d-%H%M%S}-{}", utc, RunKey::random().hex().substr(0, 4));
    std::string path = parent + "/" + id;
    if (!make_new_folder(path)) continue;
    Json complete;
    complete["id"] = id;
    complete["created"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
    complete.update(manifest);
    write_file(path + "/manifest.json", dump_json_pretty(complete));
    return RunDirectory(path, id, std::move(complete));
  }
}

RunDirectory RunDirectory::open(const std::string& path) {
  Result<Json> manifest = read_manifest(path);
  if (!manifest || !manifest->is_object() || !manifest->contains("id")) {
    throw Error(ErrorCode::kUsage, fmt::format("{} is no run directory{}", path,
                                               manifest ? "" : ": " + manifest.error().message()));
  }
  std::string id = manifest->at("id").get<std::string>();
  return RunDirectory(path, std::move(id), std::move(*manifest));
}

void RunDirectory::append(const Record& record) { records_->append(dump_json(to_json(record))); }

std::string RunDirectory::attempt_folder(const std::string& task, int attempt) const {
  std::string path = fmt::format("{}/attempts/{}/{}", path_, task, attempt);
  make_folders(path);
  return path;
}

void RunDirectory::extend_manifest(const Json& more) {
  manifest_->update(more);
  write_file(path_ + "/manifest.json", dump_json_pretty(*manifest_));
}

Result<Json> read_manifest(const std::string& run_path) {
  std::string path = run_path + "/manifest.json";
  Result<std::string> text = read_file(path);
  if (!text) return tl::unexpected<Error>(text.error());
  return parse_json(*text, path);
}

Result<std::vector<Record>> read_records(const std::string& run_path) {
  std::string path = run_path + "/records.jsonl";
  Result<std::vector<std::string>> lines = read_lines(path);
  if (!lines) return tl::unexpected<Error>(lines.error());
  std::vector<Record> records;
  for (const std::string& line : *lines) {
    std::string where = fmt::format("{}:{}", path, records.size() + 1);
    Result<Json> json = parse_json(line, where);
    if (!json) return tl::unexpected<Error>(json.error());
    Result<Record> record = record_from(*json);
    if (!record) {
      return failure(ErrorCode::kConfig, fmt::format("{}: {}", where, record.error().message()));
    }
    records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace cb::results
