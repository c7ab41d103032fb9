#include "harness/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"

namespace cb::harness {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileBytes = 1 << 20;

bool is_compiled(const fs::path& path) {
  return path.extension() == ".cu" || path.extension() == ".cc";
}

bool is_source(const fs::path& path) {
  std::string suffix = path.extension().string();
  return is_compiled(path) || suffix == ".cuh" || suffix == ".h" || suffix == ".hpp";
}

build::SourceFile read_source(const fs::path& path, const std::string& name) {
  Result<std::string> content = read_file(path.string(), kMaxFileBytes);
  if (!content) throw Error(ErrorCode::kUsage, content.error().message());
  return {name, std::move(*content)};
}

std::vector<fs::path> files_below(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file()) paths.push_back(at->path());
  }
  if (error) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: {}", folder, error.message()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Candidate Candidate::load(const std::string& path) {
  Candidate candidate;
  candidate.name = path;
  if (fs::is_directory(path)) {
    for (const fs::path& file : files_below(path)) {
      if (!is_source(file)) continue;
      candidate.sources.push_back(read_source(file, file.lexically_relative(path).string()));
    }
  } else {
    candidate.sources.push_back(read_source(path, fs::path(path).filename().string()));
  }
  if (std::none_of(candidate.sources.begin(), candidate.sources.end(),
                   [](const build::SourceFile& file) { return is_compiled(file.name); })) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: no .cu or .cc file", path));
  }
  std::string all;
  for (const build::SourceFile& file : candidate.sources) {
    all += fmt::format("{}:{}:{}:{}\n", file.name.size(), file.name, file.content.size(),
                       file.content);
  }
  candidate.sha256 = sha256_hex(all);
  return candidate;
}

std::vector<CandidateFile> find_candidates(const std::string& folder) {
  std::vector<CandidateFile> found;
  for (const fs::path& path : files_below(folder)) {
    if (!is_compiled(path)) continue;
    std::string file = path.filename().string();
    found.push_back(
        {path.string(), path.lexically_relative(folder).string(), file.substr(0, file.find('.'))});
  }
  return found;
}

}  // namespace cb::harness
