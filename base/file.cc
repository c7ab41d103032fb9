#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace cb {
namespace {

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write " + path);
    content.remove_prefix(static_cast<size_t>(written));
  }
}

void sync_folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  UniqueFd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) throw system_error("fsync folder of " + path);
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return tl::unexpected(system_error("open " + path));
  std::string content;
  char chunk[1 << 16];
  while (true) {
    ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(system_error("read " + path));
    if (got == 0) return content;
    content.append(chunk, static_cast<size_t>(got));
    if (content.size() > max_bytes) {
      return failure(ErrorCode::kUsage,
                     fmt::format("{}: larger than the {} bytes allowed here", path, max_bytes));
    }
  }
}

void write_file(const std::string& path, std::string_view content) {
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  {
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) throw system_error("create " + temporary);
    write_all(fd.get(), content, temporary);
    if (::fsync(fd.get()) != 0) throw system_error("fsync " + temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw system_error("rename to " + path);
  sync_folder_of(path);
}

DurableLog::DurableLog(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!fd_) throw system_error("open " + path);
  std::string content = value_or_throw(read_file(path, SIZE_MAX));
  size_t complete = content.rfind('\n') == std::string::npos ? 0 : content.rfind('\n') + 1;
  if (complete != content.size() && ::ftruncate(fd_.get(), static_cast<off_t>(complete)) != 0) {
    throw system_error("cut the torn last line of " + path);
  }
  sync_folder_of(path);
}

void DurableLog::append(std::string_view line) {
  std::string with_newline(line);
  with_newline.push_back('\n');
  write_all(fd_.get(), with_newline, path_);
  if (::fsync(fd_.get()) != 0) throw system_error("fsync " + path_);
}

Result<std::vector<std::string>> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  if (!std::filesystem::exists(path)) return lines;
  Result<std::string> content = read_file(path, SIZE_MAX);
  if (!content) return tl::unexpected(content.error());
  size_t start = 0;
  for (size_t end = content->find('\n'); end != std::string::npos;
       end = content->find('\n', start)) {
    lines.push_back(content->substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

TempDir::TempDir(const std::string& prefix) {
  const char* root = std::getenv("TMPDIR");
  path_ = fmt::format("{}/{}XXXXXX", root != nullptr && *root != '\0' ? root : "/tmp", prefix);
  if (::mkdtemp(path_.data()) == nullptr) throw system_error("mkdtemp " + path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cb
