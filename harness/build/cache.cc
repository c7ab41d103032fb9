#include "harness/build/cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "harness/build/compile.h"

namespace cb::build {
namespace {

namespace fs = std::filesystem;

// Raise it when the checks in this folder judge differently.
constexpr int kChecksVersion = 1;

Json tree_identity(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  Json files = Json::array();
  for (const fs::path& path : paths) {
    files.push_back({path.lexically_relative(folder).string(),
                     sha256_hex(value_or_throw(read_file(path.string())))});
  }
  return files;
}

// The compilers are large and change only by being installed anew.
Json tools_identity(const std::string& cuda_folder) {
  Json tools = Json::array();
  for (const std::string& path : {cuda_folder + "/bin/nvcc", cuda_folder + "/bin/cudafe++",
                                  cuda_folder + "/bin/ptxas", cuda_folder + "/bin/fatbinary",
                                  cuda_folder + "/nvvm/bin/cicc", std::string("/usr/bin/g++")}) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) throw system_error("stat " + path);
    tools.push_back({info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec});
  }
  return tools;
}

// Its own hash comes first, so that a damaged entry is known as one.
std::string seal(const Json& entry) {
  std::string body = dump_json(entry);
  return sha256_hex(body) + "\n" + body + "\n";
}

std::optional<Json> unseal(const std::string& text) {
  size_t newline = text.find('\n');
  if (newline == std::string::npos || text.back() != '\n') return std::nullopt;
  std::string body = text.substr(newline + 1, text.size() - newline - 2);
  if (sha256_hex(body) != text.substr(0, newline)) return std::nullopt;
  Result<Json> entry = parse_json(body, "build cache");
  if (!entry) return std::nullopt;
  return std::move(*entry);
}

void publish(const std::string& path, const std::string& content) {
  static std::atomic<unsigned> counter{0};
  std::string own = fmt::format("{}.{}-{}", path, ::getpid(), counter++);
  write_file(own, content);
  if (::rename(own.c_str(), path.c_str()) != 0) throw system_error("rename " + own);
}

constexpr BuildOutcome kKept[] = {BuildOutcome::kOk, BuildOutcome::kCompileError,
                                  BuildOutcome::kForbidden};

}  // namespace

std::string cache_key(const BuildRequest& request, const BuildTools& tools) {
  Json key;
  key["checks"] = kChecksVersion;
  key["command"] = compiler_command(request, place_sources(request.sources));
  for (const SourceFile& source : request.sources) {
    key["sources"].push_back({source.name, sha256_hex(source.content)});
  }
  key["forbidden_includes"] = request.forbidden_includes;
  key["forbidden_symbols"] = request.forbidden_symbols;
  key["headers"] = tree_identity(tools.include_folder);
  key["tools"] = tools_identity(tools.cuda_folder);
  return sha256_hex(dump_json(key));
}

BuildCache::BuildCache(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    throw Error(ErrorCode::kSystem,
                fmt::format("cannot create the build cache {}: {}; set COMMBENCH_CACHE_DIR",
                            folder_, error.message()));
  }
  // Whoever could write here would decide verdicts.
  if (::chmod(folder_.c_str(), 0700) != 0) throw system_error("chmod " + folder_);
}

std::optional<BuildResult> BuildCache::find(const std::string& key) const {
  Result<std::string> text = read_file(folder_ + "/" + key + ".json");
  if (!text) return std::nullopt;
  std::optional<Json> entry = unseal(*text);
  if (!entry) return std::nullopt;
  BuildResult result;
  result.outcome = static_cast<BuildOutcome>(entry->at("outcome").get<int>());
  result.reason = entry->at("reason").get<std::string>();
  result.log = entry->at("log").get<std::string>();
  result.fatbin_sha256 = entry->at("fatbin_sha256").get<std::vector<std::string>>();
  result.assurance = entry->at("assurance").get<std::string>();
  result.cached = true;
  if (result.outcome != BuildOutcome::kOk) return result;
  std::string digest = entry->at("library_sha256").get<std::string>();
  Result<std::string> library = read_file(folder_ + "/" + digest + ".so", size_t{512} << 20);
  if (!library || sha256_hex(*library) != digest) return std::nullopt;
  result.library = std::move(*library);
  return result;
}

void BuildCache::store(const std::string& key, const BuildResult& result) const {
  if (std::find(std::begin(kKept), std::end(kKept), result.outcome) == std::end(kKept)) return;
  Json entry;
  entry["outcome"] = static_cast<int>(result.outcome);
  entry["reason"] = result.reason;
  entry["log"] = result.log;
  entry["fatbin_sha256"] = result.fatbin_sha256;
  entry["assurance"] = result.assurance;
  if (result.outcome == BuildOutcome::kOk) {
    std::string digest = sha256_hex(result.library);
    entry["library_sha256"] = digest;
    publish(folder_ + "/" + digest + ".so", result.library);
  }
  publish(folder_ + "/" + key + ".json", seal(entry));
}

}  // namespace cb::build
