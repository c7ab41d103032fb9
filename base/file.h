#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cb {

/// The whole file, at most `max_bytes`; a larger file is an error that says so.
Result<std::string> read_file(const std::string& path, size_t max_bytes = size_t{64} << 20);

/// Replaces `path` atomically and durably: temporary file, fsync, rename, fsync of the folder.
/// Throws Error(kSystem).
void write_file(const std::string& path, std::string_view content);

/// Appends whole lines and fsyncs each, so that a line that `append` returned from survives a
/// crash. Readers must ignore a last line without a newline.
class DurableLog {
 public:
  /// Opens or creates `path`; cuts off a torn last line left by a crash. Throws Error(kSystem).
  explicit DurableLog(const std::string& path);
  /// Writes `line` and a newline. `line` holds no newline. Throws Error(kSystem).
  void append(std::string_view line);

 private:
  std::string path_;
  UniqueFd fd_;
};

/// The complete lines of a DurableLog file; empty when the file does not exist.
Result<std::vector<std::string>> read_lines(const std::string& path);

/// A folder of our own under $TMPDIR or /tmp, mode 0700, removed with its content when destroyed.
class TempDir {
 public:
  explicit TempDir(const std::string& prefix);
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cb
