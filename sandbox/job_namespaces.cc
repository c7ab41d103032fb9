#include "sandbox/job_namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "sandbox/box_command.h"

namespace cb {
namespace {

constexpr const char* kFolderPattern = "/dev/shm/commbench-job-XXXXXX";

std::string make_shared_folder(unsigned box_slot) {
  std::string path = kFolderPattern;
  if (::mkdtemp(path.data()) == nullptr) throw system_error("mkdtemp " + path);
  std::optional<Credentials> box = box_credentials(box_slot);
  if (box && ::chown(path.c_str(), box->uid, box->gid) != 0) throw system_error("chown " + path);
  return path;
}

template <typename Number>
bool parse(const std::string& text, Number& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

JobNamespaces JobNamespaces::create(unsigned box_slot) {
  JobNamespaces job;
  job.box_slot_ = box_slot;
  job.shared_folder_ = make_shared_folder(box_slot);
  JailSpec spec;
  spec.scope = JailScope::kJob;
  spec.box_slot = box_slot;
  spec.argv = {"/box/hold", "hold"};
  spec.read_only = {{COMMBENCH_BOXINIT, "/box/hold"}};
  job.holder_ = JailedProcess::spawn(spec);
  job.holder_pid_ = job.holder_->payload_pid();
  std::optional<JailOutcome> ended = job.holder_->wait(0);
  if (ended) {
    throw Error(ErrorCode::kSystem, "the holder of a job's namespaces ended: " +
                                        ended->status.describe() + " " + ended->setup_message);
  }
  job.open_namespaces();
  return job;
}

JobNamespaces JobNamespaces::open(const std::string& token) {
  std::vector<std::string> parts = split(token, ':');
  JobNamespaces job;
  bool valid = parts.size() == 3 && parse(parts[0], job.holder_pid_) && job.holder_pid_ > 0 &&
               parse(parts[1], job.box_slot_) && parts[2].starts_with("/dev/shm/commbench-job-");
  if (!valid) throw Error(ErrorCode::kUsage, fmt::format("\"{}\" names no job", printable(token)));
  job.shared_folder_ = parts[2];
  job.open_namespaces();
  return job;
}

JobNamespaces::~JobNamespaces() {
  if (!holder_) return;
  holder_->kill();
  // Removes links, never what they point to.
  std::error_code ignored;
  std::filesystem::remove_all(shared_folder_, ignored);
}

std::string JobNamespaces::token() const {
  return fmt::format("{}:{}:{}", holder_pid_, box_slot_, shared_folder_);
}

void JobNamespaces::open_namespaces() {
  auto open_one = [this](const char* kind) {
    std::string path = fmt::format("/proc/{}/ns/{}", holder_pid_, kind);
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throw system_error("open " + path + " of a job's namespaces");
    return fd;
  };
  user_ = open_one("user");
  net_ = open_one("net");
  ipc_ = open_one("ipc");
}

}  // namespace cb
