#pragma once

#include <optional>
#include <string>

#include "harness/build/build.h"

namespace cb::build {

/// Identity of everything that decides a build's result.
std::string cache_key(const BuildRequest& request, const BuildTools& tools);

/// Results by key, in files: `<key>.json`, and `<sha256>.so` for what it names. Any number of
/// processes may use one folder: entries appear by rename, and an entry that does not match its own
/// hashes counts as absent. Only outcomes that the sources alone decide are kept.
class BuildCache {
 public:
  /// Creates `folder`, readable by its owner only. Throws Error(kSystem).
  explicit BuildCache(std::string folder);

  std::optional<BuildResult> find(const std::string& key) const;
  void store(const std::string& key, const BuildResult& result) const;

 private:
  std::string folder_;
};

}  // namespace cb::build
