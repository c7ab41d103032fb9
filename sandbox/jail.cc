// The supervisor's side of a jail: prepare the plan, start bubblewrap as a user who is not root,
// put boxinit into the cgroup before it may start the payload, then collect the facts. boxinit
// watches the limits by itself, so a caller may be busy elsewhere between two calls of wait.
#include "sandbox/jail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/socket.h"
#include "sandbox/box_command.h"
#include "sandbox/box_protocol.h"
#include "sandbox/cgroup.h"
#include "sandbox/job_namespaces.h"
#include "sandbox/syscall_filter.h"

namespace cb {
namespace {

constexpr int kSetupTimeoutMs = 20'000;

const char* describe(box::Step step) {
  switch (step) {
    case box::Step::kNone:
      return "nothing";
    case box::Step::kPlan:
      return "reading the plan";
    case box::Step::kNamespaces:
      return "joining the job's namespaces";
    case box::Step::kMounts:
      return "making the root read-only";
    case box::Step::kCapabilities:
      return "dropping capabilities";
    case box::Step::kFds:
      return "placing descriptors";
    case box::Step::kLimits:
      return "setting limits";
    case box::Step::kLandlock:
      return "landlock";
    case box::Step::kFilter:
      return "the system-call filter";
    case box::Step::kExec:
      return "starting the program";
  }
  return "?";
}

void check_spec(const JailSpec& spec) {
  if (spec.argv.empty()) throw Error(ErrorCode::kUsage, "a jail needs a program to run");
  if (spec.limits.memory_bytes == 0 || spec.limits.processes == 0 || spec.limits.open_files == 0 ||
      spec.limits.tmp_bytes == 0 || spec.limits.shm_bytes == 0 || spec.limits.output_bytes == 0) {
    throw Error(ErrorCode::kUsage,
                "a jail without a cap on memory, processes, open files, "
                "temporary files or output is refused");
  }
  if (spec.fds.size() > box::kMaxPayloadFds) {
    throw Error(ErrorCode::kUsage, fmt::format("a jail takes at most {} descriptors, not {}",
                                               box::kMaxPayloadFds, spec.fds.size()));
  }
  for (const auto& [ours, theirs] : spec.fds) {
    if (ours < 0 || theirs < 3 || theirs >= static_cast<int>(spec.limits.open_files)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("descriptor {} cannot become number {} in a jail", ours, theirs));
    }
  }
}

UniqueFd plan_file(const JailSpec& spec, const std::vector<sock_filter>& filter,
                   const std::array<bool, 3>& counters) {
  const JailLimits& limits = spec.limits;
  box::Plan plan;
  plan.memory_bytes = limits.memory_bytes;
  // The daemon maps whole devices and touches little of them. Elsewhere the kernel counts a
  // thread's whole stack, touched or not.
  constexpr uint64_t kStackBytes = 8 << 20;
  plan.data_bytes = spec.profile == JailProfile::kDaemon
                        ? 0
                        : limits.memory_bytes + limits.processes * kStackBytes;
  plan.cpu_s = limits.cpu_s;
  plan.file_bytes = limits.file_bytes;
  plan.tmp_bytes = limits.tmp_bytes;
  plan.shm_bytes = limits.shm_bytes;
  plan.output_bytes = limits.output_bytes;
  plan.processes = limits.processes;
  plan.open_files = limits.open_files;
  plan.without_layers = spec.without_layers;
  plan.job_scope = spec.scope == JailScope::kJob ? 1 : 0;
  plan.joins_job = spec.job != nullptr ? 1 : 0;
  plan.has_oom_file = counters[0] ? 1 : 0;
  plan.has_pids_file = counters[1] ? 1 : 0;
  plan.has_cpu_file = counters[2] ? 1 : 0;
  plan.argument_count = static_cast<uint32_t>(spec.argv.size());
  plan.environment_count = static_cast<uint32_t>(spec.env.size());
  plan.filter_instructions = static_cast<uint32_t>(filter.size());
  plan.fd_count = static_cast<uint32_t>(spec.fds.size());
  for (size_t index = 0; index < spec.fds.size(); ++index) {
    plan.fds[index] = {box::kFirstPayloadFd + static_cast<int>(index), spec.fds[index].second};
  }
  std::string strings;
  auto append = [&strings](const std::string& text) { strings.append(text).push_back('\0'); };
  for (const std::string& argument : spec.argv) append(argument);
  for (const std::string& variable : spec.env) append(variable);
  append(spec.working_folder);
  plan.strings_bytes = static_cast<uint32_t>(strings.size());

  std::string content(reinterpret_cast<const char*>(&plan), sizeof plan);
  content.append(reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter));
  content.append(strings);
  UniqueFd file(::memfd_create("plan", MFD_CLOEXEC));
  if (!file ||
      ::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    throw system_error("write the plan of a jail");
  }
  return file;
}

UniqueFd output_file() {
  UniqueFd file(::memfd_create("output", MFD_CLOEXEC));
  if (!file) throw system_error("memfd_create");
  return file;
}

std::string content_of(const UniqueFd& file) {
  off_t bytes = ::lseek(file.get(), 0, SEEK_END);
  std::string content(static_cast<size_t>(std::max<off_t>(bytes, 0)), '\0');
  ssize_t got = ::pread(file.get(), content.data(), content.size(), 0);
  content.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return content;
}

struct Received {
  box::Message message;
  pid_t sender = -1;  ///< as the kernel translates it to our PID namespace
};

// Nothing: the jail's end is closed, or `timeout_ms` passed.
std::optional<Received> receive(int socket, int timeout_ms) {
  pollfd waiting{socket, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return std::nullopt;
  Received received;
  iovec part{&received.message, sizeof received.message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got != sizeof received.message) return std::nullopt;
  const cmsghdr* credentials = CMSG_FIRSTHDR(&header);
  if (credentials != nullptr && credentials->cmsg_type == SCM_CREDENTIALS) {
    ucred who{};
    std::memcpy(&who, CMSG_DATA(credentials), sizeof who);
    received.sender = who.pid;
  }
  return received;
}

[[noreturn]] void refuse_namespaces(const std::string& reason) {
  throw Error(
      ErrorCode::kRefused,
      fmt::format(
          "this machine lets us make no jail, so candidates will not be run: {}. "
          "Unprivileged user namespaces are needed: check that "
          "/proc/sys/user/max_user_namespaces is not 0, that kernel.unprivileged_userns_clone "
          "is 1 and kernel.apparmor_restrict_unprivileged_userns is 0 where they exist, and "
          "in a container allow them (docker: --security-opt seccomp=unconfined "
          "--security-opt systempaths=unconfined)",
          reason));
}

std::string missing_layers(uint32_t layers, const std::string& cgroup) {
  std::vector<std::string> missing;
  if (!cgroup.empty()) missing.push_back(cgroup);
  if (layers & box::kNoLandlock) missing.emplace_back("no landlock");
  if (layers & box::kNoInodeCaps) missing.emplace_back("no cap on the number of files");
  if (layers & box::kNoProcHiding) missing.emplace_back("/proc shows the machine");
  return missing.empty() ? "full" : fmt::format("degraded: {}", fmt::join(missing, "; "));
}

}  // namespace

struct JailedProcess::State {
  Cgroup cgroup;  ///< destroyed after `box`, when it is empty
  std::optional<Process> box;
  UniqueFd control;
  UniqueFd init_pidfd;  ///< of boxinit, whose end is the end of every process inside
  UniqueFd out = output_file();
  UniqueFd err = output_file();
  pid_t payload = -1;
  uint32_t missing = 0;
  uint64_t cpu_s = 0;
  std::optional<box::Message> last;
  std::optional<JailOutcome> outcome;

  void start(const JailSpec& spec);
  void await_ready();
  void await_payload();
  void await_all_gone();
  JailOutcome judge();
};

const char* to_string(LimitHit limit) {
  switch (limit) {
    case LimitHit::kNone:
      return "none";
    case LimitHit::kMemory:
      return "memory";
    case LimitHit::kProcesses:
      return "processes";
    case LimitHit::kOutput:
      return "output";
    case LimitHit::kFile:
      return "file";
    case LimitHit::kCpu:
      return "cpu";
  }
  return "?";
}

void JailedProcess::State::start(const JailSpec& spec) {
  cpu_s = spec.limits.cpu_s;
  if ((spec.without_layers & kCgroups) == 0) {
    cgroup = Cgroup::create(spec.limits.memory_bytes, spec.limits.processes);
  }
  std::array<UniqueFd, 3> counters = {cgroup.oom_file(), cgroup.pids_file(), cgroup.cpu_file()};
  auto [ours, theirs] = seqpacket_pair();
  control = std::move(ours);
  int on = 1;
  if (::setsockopt(control.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    throw system_error("SO_PASSCRED");
  }
  BoxCommand command = box_command(spec, COMMBENCH_BOXINIT);
  UniqueFd plan = plan_file(spec, syscall_filter(spec.profile, spec.scope),
                            {bool(counters[0]), bool(counters[1]), bool(counters[2])});

  ProcessOptions options;
  options.argv = command.argv;
  options.working_folder = "/";
  options.credentials = box_credentials(spec.job != nullptr ? spec.job->box_slot() : spec.box_slot);
  options.output_limit = 4096;
  // boxinit leaves when the control socket closes; a parent-death signal would also fire when a
  // mere thread of ours ends.
  options.die_with_parent = false;
  options.fds = {{theirs.get(), box::kControlFd},
                 {plan.get(), box::kPlanFd},
                 {out.get(), box::kOutFd},
                 {err.get(), box::kErrFd}};
  constexpr std::array<int, 3> kCounterFds = {box::kOomFd, box::kPidsFd, box::kCpuFd};
  for (size_t index = 0; index < counters.size(); ++index) {
    if (counters[index]) options.fds.emplace_back(counters[index].get(), kCounterFds[index]);
  }
  if (spec.job != nullptr) {
    options.fds.emplace_back(spec.job->user_namespace(), box::kUserNamespaceFd);
    options.fds.emplace_back(spec.job->net_namespace(), box::kNetNamespaceFd);
    options.fds.emplace_back(spec.job->ipc_namespace(), box::kIpcNamespaceFd);
  }
  for (size_t index = 0; index < spec.fds.size(); ++index) {
    options.fds.emplace_back(spec.fds[index].first, box::kFirstPayloadFd + static_cast<int>(index));
  }
  for (size_t index = 0; index < command.copies.size(); ++index) {
    options.fds.emplace_back(command.copies[index].get(), kFirstCopyFd + static_cast<int>(index));
  }
  box = Process::spawn(options);
}

void JailedProcess::State::await_ready() {
  std::optional<Received> ready = receive(control.get(), kSetupTimeoutMs);
  if (!ready) {
    box->kill(SIGKILL);
    box->wait(-1);
    std::string said = box->standard_error();
    said.resize(std::min(said.find('\n'), said.size()));
    bool no_namespaces =
        said.find("amespace") != std::string::npos || said.find("uid map") != std::string::npos ||
        said.find("pivot_root") != std::string::npos ||
        said.find("mount proc") != std::string::npos || said.find("loopback") != std::string::npos;
    if (no_namespaces) refuse_namespaces(said);
    throw Error(ErrorCode::kSystem,
                fmt::format("a jail did not start: {}",
                            said.empty() ? "bubblewrap said nothing and ended" : said));
  }
  if (ready->message.kind == box::MessageKind::kFailed) {
    last = ready->message;
    return;
  }
  missing = ready->message.missing_layers;
  init_pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, ready->sender, 0)));
  if (!init_pidfd) throw system_error("pidfd_open of a jail's first process");
  cgroup.add(ready->sender);
}

void JailedProcess::State::await_payload() {
  if (last) return;
  char go = 1;
  // A jail that has died in between is seen by the receive below.
  ssize_t ignored = ::send(control.get(), &go, 1, MSG_NOSIGNAL);
  (void)ignored;
  std::optional<Received> started = receive(control.get(), kSetupTimeoutMs);
  if (!started) return;
  if (started->message.kind == box::MessageKind::kStarted) {
    payload = started->sender;
  } else {
    last = started->message;
  }
}

void JailedProcess::State::await_all_gone() {
  if (!init_pidfd) return;
  pollfd gone{init_pidfd.get(), POLLIN, 0};
  while (::poll(&gone, 1, -1) < 0 && errno == EINTR) {
  }
}

JailOutcome JailedProcess::State::judge() {
  while (true) {
    std::optional<Received> received = receive(control.get(), 0);
    if (!received) break;
    // The first failure is the cause of what follows.
    if (!last || last->kind != box::MessageKind::kFailed) last = received->message;
  }
  JailOutcome result;
  if (init_pidfd) result.assurance = missing_layers(missing, cgroup.missing());
  result.peak_memory_bytes = cgroup.peak_memory_bytes();
  if (last && last->kind == box::MessageKind::kFailed) {
    result.setup_failed = true;
    result.setup_message = fmt::format("{}: {}", describe(last->step), std::strerror(last->error));
    result.status.code = 125;
    return result;
  }
  result.status.signal = SIGKILL;
  if (!last || last->kind != box::MessageKind::kEnded) {
    // boxinit is gone without a report: killed by us, or with the cgroup.
    if (cgroup.out_of_memory()) result.limit = LimitHit::kMemory;
    return result;
  }
  result.cpu_seconds = static_cast<double>(last->cpu_ns) * 1e-9;
  result.peak_memory_bytes = std::max(result.peak_memory_bytes, last->peak_memory_bytes);
  result.limit = static_cast<LimitHit>(last->limit);
  if (last->denied_syscall >= 0 || last->saw_sigsys != 0) {
    result.killed_for_syscall = true;
    result.syscall_name = last->denied_syscall >= 0
                              ? syscall_name(last->denied_syscall, last->denied_arch)
                              : "foreign architecture";
  }
  if (last->exit_code >= 0) {
    result.status = ExitStatus{last->exit_code, std::nullopt};
  } else if (last->signal != 0) {
    result.status.signal = last->signal;
  }
  // The second stage of RLIMIT_CPU, for programs that ignore SIGXCPU.
  if (result.limit == LimitHit::kNone && cpu_s != 0 && result.status.signal == SIGKILL &&
      result.cpu_seconds >= static_cast<double>(cpu_s)) {
    result.limit = LimitHit::kCpu;
  }
  return result;
}

JailedProcess::JailedProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
JailedProcess::JailedProcess(JailedProcess&&) noexcept = default;

JailedProcess& JailedProcess::operator=(JailedProcess&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

JailedProcess::~JailedProcess() {
  if (state_) kill();
}

JailedProcess JailedProcess::spawn(const JailSpec& spec) {
  check_spec(spec);
  auto state = std::make_unique<State>();
  state->start(spec);
  JailedProcess jail(std::move(state));
  jail.state_->await_ready();
  jail.state_->await_payload();
  return jail;
}

int JailedProcess::pidfd() const { return state_->box->pidfd(); }
pid_t JailedProcess::payload_pid() const { return state_->payload; }

std::optional<JailOutcome> JailedProcess::wait(int timeout_ms) {
  if (state_->outcome) return state_->outcome;
  if (!state_->box->wait(timeout_ms)) return std::nullopt;
  state_->await_all_gone();
  state_->outcome = state_->judge();
  return state_->outcome;
}

void JailedProcess::kill() {
  if (state_->outcome) return;
  if (state_->init_pidfd) {
    ::syscall(SYS_pidfd_send_signal, state_->init_pidfd.get(), SIGKILL, nullptr, 0);
  } else {
    state_->box->kill(SIGKILL);
  }
  wait(-1);
}

std::string JailedProcess::standard_output() const { return content_of(state_->out); }
std::string JailedProcess::standard_error() const { return content_of(state_->err); }

CompletedJail run_jailed(const JailSpec& spec, int timeout_ms) {
  JailedProcess jail = JailedProcess::spawn(spec);
  CompletedJail done;
  std::optional<JailOutcome> outcome = jail.wait(timeout_ms);
  if (!outcome) {
    done.timed_out = true;
    jail.kill();
    outcome = jail.wait(-1);
  }
  done.outcome = *outcome;
  done.standard_output = jail.standard_output();
  done.standard_error = jail.standard_error();
  return done;
}

std::string jail_assurance() {
  JailSpec spec;
  // Every jail has the loader, and it runs without touching anything.
  spec.argv = {"/lib64/ld-linux-x86-64.so.2", "--version"};
  CompletedJail done = run_jailed(spec, kSetupTimeoutMs);
  if (done.outcome.setup_failed || !done.outcome.status.success()) {
    throw Error(ErrorCode::kRefused,
                "a jail could not be set up here, so candidates will not be "
                "run: " +
                    done.outcome.status.describe() + " " + done.outcome.setup_message);
  }
  return done.outcome.assurance;
}

void require_jail() { jail_assurance(); }

}  // namespace cb
