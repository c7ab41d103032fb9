// The main process of a build jail: runs the compiler, then hands its products to the supervisor
// as one stream in a memfd, so that no folder is shared with the jail and no name that a candidate
// chose is ever opened outside. Usage: box_build FD FOLDER SUFFIX[,SUFFIX...] COMMAND...
#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "harness/build/product.h"

namespace cb::build {
namespace {

bool wanted(const std::string& name, const std::string& suffixes) {
  size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  return ("," + suffixes + ",").find("," + name.substr(dot) + ",") != std::string::npos;
}

bool write_all(int fd, const void* data, size_t bytes) {
  return ::write(fd, data, bytes) == static_cast<ssize_t>(bytes);
}

bool send_file(int to, const std::string& folder, const std::string& name) {
  std::string path = folder;
  path.append("/").append(name);
  int from = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat info {};
  if (from < 0 || ::fstat(from, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  ProductHeader header;
  header.name_bytes = static_cast<uint32_t>(name.size());
  header.content_bytes = static_cast<uint64_t>(info.st_size);
  if (!write_all(to, &header, sizeof header) || !write_all(to, name.data(), name.size())) {
    return false;
  }
  for (off_t left = info.st_size; left > 0;) {
    ssize_t sent = ::sendfile(to, from, nullptr, static_cast<size_t>(left));
    if (sent <= 0) return false;
    left -= sent;
  }
  ::close(from);
  return true;
}

int run(char** command) {
  pid_t child = ::fork();
  if (child == 0) {
    ::execvp(command[0], command);
    std::perror(command[0]);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int build(int to, const std::string& folder, const std::string& suffixes, char** command) {
  ::fcntl(to, F_SETFD, FD_CLOEXEC);
  if (::mkdir(folder.c_str(), 0700) != 0) return 127;
  int code = run(command);
  if (code != 0) return code;
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) return 127;
  while (const dirent* entry = ::readdir(listing)) {
    std::string name = entry->d_name;
    if (wanted(name, suffixes) && !send_file(to, folder, name)) {
      std::perror(name.c_str());
      return 126;
    }
  }
  return 0;
}

}  // namespace
}  // namespace cb::build

int main(int argc, char** argv) {
  if (argc < 5) return 127;
  return cb::build::build(std::atoi(argv[1]), argv[2], argv[3], argv + 4);
}
