#include "sandbox/box_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cb::box {
namespace {

uint64_t field_of(const char* text, const char* key) {
  const char* found = std::strstr(text, key);
  return found != nullptr ? std::strtoull(found + std::strlen(key), nullptr, 10) : 0;
}

bool full(const char* path) {
  struct statvfs fs {};
  return ::statvfs(path, &fs) == 0 && fs.f_blocks != 0 && (fs.f_bavail == 0 || fs.f_ffree == 0);
}

}  // namespace

Usage measure_usage() {
  Usage usage;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return usage;
  while (const dirent* entry = ::readdir(proc)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    if (std::strcmp(entry->d_name, "1") == 0) continue;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%.20s/status", entry->d_name);
    int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    char text[4096];
    ssize_t got = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (got <= 0) continue;
    text[got] = '\0';
    // The name, on the first line, is the payload's to choose.
    const char* rest = std::strchr(text, '\n');
    if (rest == nullptr) continue;
    usage.memory_bytes += (field_of(rest, "\nRssAnon:") + field_of(rest, "\nRssShmem:")) << 10;
    usage.largest_data_bytes =
        std::max(usage.largest_data_bytes, field_of(rest, "\nVmData:") << 10);
    usage.tasks += static_cast<unsigned>(field_of(rest, "\nThreads:"));
  }
  ::closedir(proc);
  return usage;
}

uint64_t read_counter(int fd, const char* key) {
  char text[4096];
  ssize_t got = ::pread(fd, text, sizeof text - 1, 0);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* at = text;
  if (key != nullptr) {
    size_t key_length = std::strlen(key);
    while (std::strncmp(at, key, key_length) != 0 || at[key_length] != ' ') {
      at = std::strchr(at, '\n');
      if (at == nullptr) return 0;
      ++at;
    }
    at += key_length;
  }
  return std::strtoull(at, nullptr, 10);
}

bool temporary_files_full() { return full("/tmp") || full("/dev/shm"); }

}  // namespace cb::box
