#include "harness/rank/host_process.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/error.h"
#include "base/socket.h"
#include "simulator/protocol/protocol.h"

namespace cb::harness {
namespace {

using results::Verdict;

constexpr int kConnectionFd = 3;
constexpr int kStagingFd = 4;
constexpr int kControlFd = 5;
constexpr size_t kMaxOutputBytes = 16 << 10;

/// NVIDIA's compiler library, and the headers that what it compiles may include.
void add_nvrtc(const std::string& cuda_folder, JailSpec& spec) {
  namespace fs = std::filesystem;
  size_t found = 0;
  for (const auto& entry : fs::directory_iterator(cuda_folder + "/lib64")) {
    std::string name = entry.path().filename();
    bool is_compiler = name == "libnvrtc.so.13";
    if (!is_compiler && !name.starts_with("libnvrtc-builtins.so.13.")) continue;
    found += is_compiler ? 1 : 0;
    spec.read_only.emplace_back(fs::canonical(entry.path()), "/box/lib/" + name);
  }
  if (found == 0) {
    throw Error(ErrorCode::kConfig,
                fmt::format("no libnvrtc.so.13 in {}/lib64, which the task's links ask for; set "
                            "CUDA_HOME to a toolkit that has it",
                            cuda_folder));
  }
  spec.read_only.emplace_back(fs::canonical(cuda_folder + "/include"), "/box/cuda/include");
  spec.env.push_back("CUDA_HOME=/box/cuda");
}

JailSpec host_spec(const Job& job, int rank, const std::string& library,
                   const sim::HostConnection& connection, int control_fd) {
  JailSpec spec;
  spec.profile = JailProfile::kHost;
  spec.scope = JailScope::kRank;
  spec.argv = {"/box/commbench-host"};
  spec.env = {"PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=/box/lib",
              fmt::format("{}={}", sim::kConnectionFdVariable, kConnectionFd),
              fmt::format("{}={}", sim::kStagingFdVariable, kStagingFd),
              fmt::format("{}={}", host::kControlFdVariable, kControlFd)};
  spec.env.insert(spec.env.end(), job.environment.begin(), job.environment.end());
  spec.read_only = {
      {job.host_program, "/box/commbench-host"},
      {job.library_folder + "/libcudart.so.13", "/box/lib/libcudart.so.13"},
      {job.library_folder + "/libcuda.so.1", "/box/lib/libcuda.so.1"},
      {job.library_folder + "/libnvidia-ml.so.1", "/box/lib/libnvidia-ml.so.1"},
  };
  if (job.runtime_code) add_nvrtc(job.cuda_folder, spec);
  spec.files = {{host::kCandidatePath, library}};
  spec.fds = {{connection.connection.get(), kConnectionFd},
              {connection.staging.get(), kStagingFd},
              {control_fd, kControlFd}};
  spec.limits.memory_bytes = uint64_t{1} << 30;
  spec.limits.cpu_s = job.wall_limit_ms / 1000 + 1;
  spec.box_slot = job.first_box_slot + static_cast<unsigned>(rank);
  return spec;
}

std::string limit_reason(LimitHit limit) { return fmt::format("limit_{}", to_string(limit)); }

}  // namespace

HostProcess::HostProcess(const Job& job, int rank, const std::string& library,
                         const sim::HostConnection& connection)
    : jail_([&] {
        auto [ours, theirs] = seqpacket_pair();
        control_ = std::move(ours);
        return JailedProcess::spawn(host_spec(job, rank, library, connection, theirs.get()));
      }()) {}

void HostProcess::send(const host::Message& message,
                       const std::vector<host::Relocation>& relocations,
                       const std::vector<std::byte>& blob) {
  std::vector<std::byte> bytes;
  auto add = [&](const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  host::Message header = message;
  header.num_relocations = static_cast<uint32_t>(relocations.size());
  header.blob_bytes = static_cast<uint32_t>(blob.size());
  add(&header, sizeof header);
  add(relocations.data(), relocations.size() * sizeof(host::Relocation));
  add(blob.data(), blob.size());
  CB_CHECK(bytes.size() <= host::kMaxMessageBytes, "a struct for the candidate is too large");
  // The host reads it only after `go`, so waiting for room would wait for ever. A host that is gone
  // shows in other ways.
  ssize_t sent = 0;
  do {
    sent = ::send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EPIPE && errno != ECONNRESET) {
    throw system_error("give a host its arguments");
  }
}

const std::optional<JailOutcome>& HostProcess::ended(int timeout_ms) {
  if (!outcome_) outcome_ = jail_.wait(timeout_ms);
  return outcome_;
}

const std::optional<JailOutcome>& HostProcess::stop(int timeout_ms) {
  if (!ended(0)) ::kill(jail_.payload_pid(), SIGKILL);
  return ended(timeout_ms);
}

std::string HostProcess::output() const {
  std::string text = jail_.standard_output();
  text.resize(std::min(text.size(), kMaxOutputBytes));
  std::string errors = jail_.standard_error();
  errors.resize(std::min(errors.size(), kMaxOutputBytes));
  return text + errors;
}

Evidence evidence_of_end(const JailOutcome& outcome) {
  Evidence evidence;
  std::string& message = evidence.finding.message;
  if (outcome.setup_failed) {
    evidence.verdict = Verdict::kInfraError;
    evidence.reason = "jail";
    message = "the jail broke down: " + outcome.setup_message;
  } else if (outcome.killed_for_syscall) {
    evidence.verdict = Verdict::kForbidden;
    evidence.reason = "syscall";
    message = fmt::format("the process made a system call that candidates may not make: {}",
                          outcome.syscall_name.empty() ? "unknown" : outcome.syscall_name);
  } else if (outcome.limit == LimitHit::kCpu) {
    evidence.verdict = Verdict::kTimeout;
    evidence.reason = "cpu";
    message = "the process used up its processor time";
  } else if (outcome.limit != LimitHit::kNone) {
    evidence.reason = limit_reason(outcome.limit);
    message = fmt::format("the process reached its limit of {}", to_string(outcome.limit));
  } else if (outcome.status.signal) {
    evidence.reason = "crashed";
    message = fmt::format("the process was {}", outcome.status.describe());
  } else {
    evidence.reason = "exited_early";
    message = fmt::format("the process ended before it was done ({})", outcome.status.describe());
  }
  return evidence;
}

}  // namespace cb::harness
