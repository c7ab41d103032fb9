// One way to start a child. Between fork and exec only async-signal-safe calls are made, because
// the parent may have threads; everything that allocates is prepared before the fork. A failure in
// the child travels back through a close-on-exec pipe as {step, errno}.
#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace cb {
namespace {

enum class ChildStep : int { kFds, kCredentials, kLimits, kFolder, kExec, kParentGone };

const char* describe(ChildStep step) {
  switch (step) {
    case ChildStep::kFds:
      return "descriptors";
    case ChildStep::kCredentials:
      return "user and group";
    case ChildStep::kLimits:
      return "resource limits";
    case ChildStep::kFolder:
      return "working folder";
    case ChildStep::kExec:
      return "exec";
    case ChildStep::kParentGone:
      return "parent is gone";
  }
  return "?";
}

struct ChildFailure {
  ChildStep step;
  int error;
};

struct ChildPlan {
  std::vector<char*> argv;
  std::vector<char*> env;
  std::vector<std::pair<int, int>> fds;
  const ProcessOptions* options;
  pid_t parent;
  int failure_fd;
};

[[noreturn]] void fail_child(const ChildPlan& plan, int failure_fd, ChildStep step) {
  ChildFailure failure{step, errno};
  ssize_t ignored = ::write(failure_fd, &failure, sizeof failure);
  (void)ignored;
  (void)plan;
  ::_exit(127);
}

// Moves every source above all targets first, so that no dup2 overwrites a source still needed.
// Returns the failure pipe's new number.
int place_fds(ChildPlan& plan) {
  int above = 3;
  for (const auto& [source, target] : plan.fds) above = std::max(above, target + 1);
  int failure_fd = ::fcntl(plan.failure_fd, F_DUPFD_CLOEXEC, above);
  if (failure_fd < 0) fail_child(plan, plan.failure_fd, ChildStep::kFds);
  for (auto& [source, target] : plan.fds) {
    source = ::fcntl(source, F_DUPFD_CLOEXEC, above);
    if (source < 0) fail_child(plan, failure_fd, ChildStep::kFds);
  }
  for (const auto& [source, target] : plan.fds) {
    if (::dup2(source, target) < 0) fail_child(plan, failure_fd, ChildStep::kFds);
  }
  // Close-on-exec for everything that is not a target.
  if (::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) != 0) {
    fail_child(plan, failure_fd, ChildStep::kFds);
  }
  for (const auto& [source, target] : plan.fds) {
    if (target > 2 && ::fcntl(target, F_SETFD, 0) != 0) {
      fail_child(plan, failure_fd, ChildStep::kFds);
    }
  }
  return failure_fd;
}

[[noreturn]] void run_child(ChildPlan& plan) {
  const ProcessOptions& options = *plan.options;
  ::setsid();
  int failure_fd = place_fds(plan);
  for (const ResourceLimit& limit : options.limits) {
    rlimit value{limit.soft, limit.hard};
    if (::setrlimit(static_cast<__rlimit_resource>(limit.resource), &value) != 0) {
      fail_child(plan, failure_fd, ChildStep::kLimits);
    }
  }
  if (!options.working_folder.empty() && ::chdir(options.working_folder.c_str()) != 0) {
    fail_child(plan, failure_fd, ChildStep::kFolder);
  }
  if (options.credentials) {
    const Credentials& who = *options.credentials;
    if ((::geteuid() == 0 && ::setgroups(0, nullptr) != 0) ||
        ::setresgid(who.gid, who.gid, who.gid) != 0 ||
        ::setresuid(who.uid, who.uid, who.uid) != 0) {
      fail_child(plan, failure_fd, ChildStep::kCredentials);
    }
  }
  // After setresuid, which clears it.
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) {
      errno = ESRCH;
      fail_child(plan, failure_fd, ChildStep::kParentGone);
    }
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvpe(plan.argv[0], plan.argv.data(), plan.env.data());
  fail_child(plan, failure_fd, ChildStep::kExec);
}

std::pair<UniqueFd, UniqueFd> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) throw system_error("pipe");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string ExitStatus::describe() const {
  if (code) return fmt::format("exit code {}", *code);
  const char* name = ::sigabbrev_np(*signal);
  return name != nullptr ? fmt::format("killed by SIG{}", name)
                         : fmt::format("killed by signal {}", *signal);
}

Process Process::spawn(const ProcessOptions& options) {
  ChildPlan plan;
  plan.argv = pointers_to(options.argv);
  plan.env = pointers_to(options.env);
  plan.options = &options;
  plan.parent = ::getpid();

  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) throw system_error("open /dev/null");
  std::pair<UniqueFd, UniqueFd> out;
  std::pair<UniqueFd, UniqueFd> err;
  plan.fds.emplace_back(null.get(), 0);
  if (options.output == ChildOutput::kCapture) {
    out = make_pipe();
    err = make_pipe();
    plan.fds.emplace_back(out.second.get(), 1);
    plan.fds.emplace_back(err.second.get(), 2);
  } else {
    bool inherit = options.output == ChildOutput::kInherit;
    plan.fds.emplace_back(inherit ? 1 : null.get(), 1);
    plan.fds.emplace_back(inherit ? 2 : null.get(), 2);
  }
  plan.fds.insert(plan.fds.end(), options.fds.begin(), options.fds.end());
  auto [failure_read, failure_write] = make_pipe();
  plan.failure_fd = failure_write.get();

  Process process;
  process.pid_ = ::fork();
  if (process.pid_ < 0) throw system_error("fork");
  if (process.pid_ == 0) run_child(plan);
  failure_write.reset();
  process.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, process.pid_, 0)));
  if (!process.pidfd_) throw system_error("pidfd_open");

  ChildFailure failure{};
  ssize_t got = 0;
  do {
    got = ::read(failure_read.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof failure) {
    process.reap();
    throw system_error(fmt::format("start {}: {}", options.argv[0], cb::describe(failure.step)),
                       failure.error);
  }
  for (auto [capture, fd] : {std::pair{&process.out_, &out.first}, {&process.err_, &err.first}}) {
    if (!*fd) continue;
    ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    capture->fd = std::move(*fd);
    capture->limit = options.output_limit;
  }
  return process;
}

void Process::swap(Process& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  std::swap(status_, other.status_);
  std::swap(cpu_seconds_, other.cpu_seconds_);
}

Process::~Process() {
  if (pid_ > 0 && !status_) {
    kill(SIGKILL);
    reap();
  }
}

void Process::Capture::read_available() {
  char chunk[1 << 16];
  while (fd) {
    ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      fd.reset();
      return;
    }
    total += static_cast<uint64_t>(got);
    size_t room = limit - std::min(limit, kept.size());
    kept.append(chunk, std::min(room, static_cast<size_t>(got)));
  }
}

void Process::drain() {
  out_.read_available();
  err_.read_available();
}

void Process::reap() {
  int raw = 0;
  rusage usage{};
  while (::wait4(pid_, &raw, 0, &usage) < 0) {
    if (errno != EINTR) throw system_error("wait4");
  }
  status_ = ExitStatus{};
  if (WIFEXITED(raw)) {
    status_->code = WEXITSTATUS(raw);
  } else {
    status_->signal = WTERMSIG(raw);
  }
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  cpu_seconds_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::optional<ExitStatus> Process::wait(int timeout_ms) {
  if (status_) return status_;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    pollfd fds[3] = {
        {pidfd_.get(), POLLIN, 0}, {out_.fd.get(), POLLIN, 0}, {err_.fd.get(), POLLIN, 0}};
    int left = -1;
    if (timeout_ms >= 0) {
      auto remaining = deadline - std::chrono::steady_clock::now();
      left = std::max<int>(
          0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(remaining).count()));
    }
    int ready = ::poll(fds, 3, left);
    if (ready < 0 && errno != EINTR) throw system_error("poll");
    drain();
    if (ready > 0 && fds[0].revents != 0) {
      // A descendant may still hold the pipes: what is there now is all that counts.
      reap();
      drain();
      return status_;
    }
    if (ready == 0) return std::nullopt;
  }
}

void Process::kill(int signal) {
  if (pid_ <= 0 || status_) return;
  ::kill(-pid_, signal);
  // The child may not have reached setsid() yet, or may have left its group.
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

CompletedProcess run_process(const ProcessOptions& options, int timeout_ms) {
  Process process = Process::spawn(options);
  CompletedProcess result;
  std::optional<ExitStatus> status = process.wait(timeout_ms);
  if (!status) {
    result.timed_out = true;
    process.kill(SIGKILL);
    status = process.wait(-1);
  }
  result.status = *status;
  result.standard_output = process.standard_output();
  result.standard_error = process.standard_error();
  result.output_bytes = process.output_bytes();
  result.cpu_seconds = process.cpu_seconds();
  return result;
}

std::vector<std::string> environment_subset(const std::vector<std::string>& names) {
  std::vector<std::string> variables;
  for (const std::string& name : names) {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr) variables.push_back(name + "=" + value);
  }
  return variables;
}

}  // namespace cb
