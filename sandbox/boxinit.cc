// PID 1 of a jail. bubblewrap has made the namespaces and mounts; boxinit tightens them, starts the
// payload behind limits, landlock and the system-call filter, and then watches: output, memory,
// tasks, denied calls and the supervisor's socket all meet in one poll loop. It is the only process
// in here that is trusted: not dumpable, hidden in /proc, out of reach of signals, and the payload
// never holds one of its descriptors. When it ends, the kernel ends every process of the jail.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sandbox/box_confine.h"
#include "sandbox/box_protocol.h"
#include "sandbox/box_watch.h"
#include "sandbox/jail.h"

namespace cb::box {
namespace {

struct LoadedPlan {
  const Plan* plan = nullptr;
  const sock_filter* filter = nullptr;
  std::vector<char*> argv;
  std::vector<char*> env;
  const char* folder = "/";
};

[[noreturn]] void fail(int control, Step step) {
  Message message;
  message.kind = MessageKind::kFailed;
  message.step = step;
  message.error = errno;
  ssize_t ignored = ::write(control, &message, sizeof message);
  (void)ignored;
  ::_exit(125);
}

LoadedPlan load_plan() {
  struct stat info {};
  if (::fstat(kPlanFd, &info) != 0) fail(kControlFd, Step::kPlan);
  auto bytes = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, kPlanFd, 0);
  if (data == MAP_FAILED || bytes < sizeof(Plan)) fail(kControlFd, Step::kPlan);
  LoadedPlan loaded;
  loaded.plan = static_cast<const Plan*>(data);
  const Plan& plan = *loaded.plan;
  char* filter = static_cast<char*>(data) + sizeof(Plan);
  char* text = filter + plan.filter_instructions * sizeof(sock_filter);
  loaded.filter = reinterpret_cast<const sock_filter*>(filter);
  auto take = [&text](uint32_t count, std::vector<char*>& strings) {
    for (uint32_t i = 0; i < count; ++i) {
      strings.push_back(text);
      text += std::strlen(text) + 1;
    }
    strings.push_back(nullptr);
  };
  take(plan.argument_count, loaded.argv);
  take(plan.environment_count, loaded.env);
  loaded.folder = text;
  return loaded;
}

bool send_descriptor(int channel, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* message = CMSG_FIRSTHDR(&header);
  message->cmsg_level = SOL_SOCKET;
  message->cmsg_type = SCM_RIGHTS;
  message->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(message), &fd, sizeof fd);
  return ::sendmsg(channel, &header, MSG_NOSIGNAL) == 1;
}

// -1 when the child ended before it had a filter.
int receive_descriptor(int channel) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  if (::recvmsg(channel, &header, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* message = CMSG_FIRSTHDR(&header);
  if (message == nullptr || message->cmsg_type != SCM_RIGHTS) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(message), sizeof fd);
  return fd;
}

struct PayloadEnds {
  int out, err, control, channel;
};

// Everything moves above every target first, so that no dup2 overwrites what is still needed.
PayloadEnds place_descriptors(const Plan& plan, PayloadEnds ends) {
  int above = kFirstPayloadFd;
  for (uint32_t i = 0; i < plan.fd_count; ++i) above = std::max(above, plan.fds[i].to + 1);
  auto lift = [above](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, above); };
  PayloadEnds lifted{lift(ends.out), lift(ends.err), lift(ends.control), lift(ends.channel)};
  if (lifted.control < 0) fail(ends.control, Step::kFds);
  std::vector<PayloadFd> moved(plan.fds.begin(), plan.fds.begin() + plan.fd_count);
  for (PayloadFd& fd : moved) {
    fd.from = lift(fd.from);
    if (fd.from < 0) fail(lifted.control, Step::kFds);
  }
  int null = lift(::open("/dev/null", O_RDWR | O_CLOEXEC));
  bool placed = ::syscall(SYS_close_range, 3u, static_cast<unsigned>(above) - 1, 0u) == 0 &&
                ::dup2(null, 0) == 0 && ::dup2(lifted.out, 1) == 1 && ::dup2(lifted.err, 2) == 2;
  for (const PayloadFd& fd : moved) placed = placed && ::dup2(fd.from, fd.to) == fd.to;
  // What lies above the targets goes at exec; the filter's descriptor is close-on-exec itself.
  placed = placed && ::syscall(SYS_close_range, static_cast<unsigned>(above), ~0u,
                               4u /* CLOSE_RANGE_CLOEXEC */) == 0;
  if (!placed) fail(lifted.control, Step::kFds);
  return lifted;
}

[[noreturn]] void run_payload(const LoadedPlan& loaded, PayloadEnds ends, uint32_t abi) {
  const Plan& plan = *loaded.plan;
  ::setsid();
  ends = place_descriptors(plan, ends);
  if (::chdir(loaded.folder) != 0) fail(ends.control, Step::kFds);
  if (drop_all_capabilities() != 0) fail(ends.control, Step::kCapabilities);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (abi != 0 && apply_landlock(abi, plan.job_scope == 0) != 0)
    fail(ends.control, Step::kLandlock);
  if (apply_limits(plan) != 0) fail(ends.control, Step::kLimits);
  if ((plan.without_layers & kSyscallFilter) == 0) {
    int listener = apply_filter(loaded.filter, plan.filter_instructions);
    if (listener < 0 || !send_descriptor(ends.channel, listener)) {
      fail(ends.control, Step::kFilter);
    }
    ::close(listener);
  }
  Message started;
  started.kind = MessageKind::kStarted;
  if (::write(ends.control, &started, sizeof started) != sizeof started) ::_exit(125);
  ::execve(loaded.argv[0], loaded.argv.data(), loaded.env.data());
  fail(ends.control, Step::kExec);
}

// Counts what the payload writes to one stream and keeps it in a memfd of the supervisor's.
struct Stream {
  int pipe = -1;
  int memfd = -1;

  // Adds to `total`; closes the pipe at its end.
  void read_available(uint64_t& total, uint64_t cap) {
    static char chunk[1 << 16];
    while (pipe >= 0 && total <= cap) {
      ssize_t got = ::read(pipe, chunk, sizeof chunk);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        ::close(pipe);
        pipe = -1;
        return;
      }
      uint64_t room = cap - std::min(cap, total);
      total += static_cast<uint64_t>(got);
      size_t keep = std::min<uint64_t>(room, static_cast<uint64_t>(got));
      if (keep != 0 && ::write(memfd, chunk, keep) < 0) return;
    }
  }
};

class Watch {
 public:
  Watch(const Plan& plan, pid_t payload, int listener, Stream out, Stream err, int signals)
      : plan_(plan),
        payload_(payload),
        listener_(listener),
        out_(out),
        err_(err),
        signals_(signals) {}

  // Until the payload ends, hits a cap or makes a denied call, or the supervisor is gone.
  Message run() {
    while (!over_) {
      int pause_ms = look();
      if (!over_) sleep_until_event(pause_ms);
    }
    finish();
    return report_;
  }

 private:
  // Checks every cap; returns for how long nothing can go wrong, in milliseconds.
  int look() {
    if (plan_.has_oom_file != 0 && read_counter(kOomFd, "oom_kill") != 0) end(LimitHit::kMemory);
    if (plan_.has_pids_file != 0 && read_counter(kPidsFd, "max") != 0) end(LimitHit::kProcesses);
    if (plan_.cpu_s != 0 && plan_.has_cpu_file != 0 &&
        cgroup_cpu_ns() >= plan_.cpu_s * 1'000'000'000) {
      end(LimitHit::kCpu);
    }
    constexpr int kLongest = 100;
    if ((plan_.without_layers & kWatchdog) != 0) return kLongest;
    Usage usage = measure_usage();
    report_.peak_memory_bytes = std::max(report_.peak_memory_bytes, usage.memory_bytes);
    if (usage.memory_bytes > plan_.memory_bytes) end(LimitHit::kMemory);
    // RLIMIT_DATA makes malloc fail just after this point, and then nobody would know why.
    if (plan_.data_bytes != 0 && usage.largest_data_bytes > plan_.data_bytes / 16 * 15) {
      end(LimitHit::kMemory);
    }
    if (usage.tasks >= plan_.processes) end(LimitHit::kProcesses);
    // Page faults fill at most a few MiB in a millisecond.
    constexpr uint64_t kFastestGrowthBytesPerMs = 4 << 20;
    uint64_t room = plan_.memory_bytes - std::min(plan_.memory_bytes, usage.memory_bytes);
    return static_cast<int>(std::clamp<uint64_t>(room / kFastestGrowthBytesPerMs, 5, kLongest));
  }

  void sleep_until_event(int pause_ms) {
    pollfd fds[] = {{signals_, POLLIN, 0},
                    {kControlFd, POLLIN, 0},
                    {out_.pipe, POLLIN, 0},
                    {err_.pipe, POLLIN, 0},
                    {listener_, POLLIN, 0}};
    timespec deadline = now_plus(pause_ms);
    while (!over_) {
      int left_ms = milliseconds_until(deadline);
      if (left_ms <= 0 || ::poll(fds, 5, left_ms) <= 0) return;
      if (fds[4].revents & POLLIN) take_denied_call();
      if (fds[4].revents & (POLLHUP | POLLERR)) fds[4].fd = listener_ = -1;
      if (fds[1].revents != 0) ::_exit(0);  // The supervisor let go: nobody wants the report.
      out_.read_available(output_bytes_, plan_.output_bytes);
      err_.read_available(output_bytes_, plan_.output_bytes);
      fds[2].fd = out_.pipe;
      fds[3].fd = err_.pipe;
      if (output_bytes_ > plan_.output_bytes) end(LimitHit::kOutput);
      if (fds[0].revents != 0) {
        signalfd_siginfo ignored;
        ssize_t got = ::read(signals_, &ignored, sizeof ignored);
        (void)got;
        reap(WNOHANG);
      }
    }
  }

  void take_denied_call() {
    seccomp_notif notice{};
    if (::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &notice) != 0) return;
    report_.denied_syscall = notice.data.nr;
    report_.denied_arch = notice.data.arch;
    over_ = true;
  }

  void reap(int flags) {
    int raw = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &raw, flags)) > 0) {
      int signal = WIFSIGNALED(raw) ? WTERMSIG(raw) : 0;
      if (signal == SIGSYS) report_.saw_sigsys = 1;
      if (pid != payload_) continue;
      report_.exit_code = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
      report_.signal = signal;
      if (signal == SIGXCPU) report_.limit = static_cast<uint32_t>(LimitHit::kCpu);
      if (signal == SIGXFSZ) report_.limit = static_cast<uint32_t>(LimitHit::kFile);
      over_ = true;
    }
  }

  void end(LimitHit limit) {
    report_.limit = static_cast<uint32_t>(limit);
    over_ = true;
  }

  // A cap that was hit between the last look and the end.
  void name_missed_limit() {
    if (plan_.has_oom_file != 0 && read_counter(kOomFd, "oom_kill") != 0) end(LimitHit::kMemory);
    if (report_.limit != static_cast<uint32_t>(LimitHit::kNone)) return;
    if (output_bytes_ > plan_.output_bytes) {
      end(LimitHit::kOutput);
    } else if (report_.exit_code != 0) {
      if (plan_.has_pids_file != 0 && read_counter(kPidsFd, "max") != 0) end(LimitHit::kProcesses);
      if (temporary_files_full()) end(LimitHit::kFile);
    }
  }

  void finish() {
    ::kill(-1, SIGKILL);
    reap(0);
    out_.read_available(output_bytes_, plan_.output_bytes);
    err_.read_available(output_bytes_, plan_.output_bytes);
    name_missed_limit();
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    auto nanoseconds = [](const timeval& t) {
      return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
             static_cast<uint64_t>(t.tv_usec) * 1000;
    };
    report_.cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
    if (plan_.has_cpu_file != 0) report_.cpu_ns = std::max(report_.cpu_ns, cgroup_cpu_ns());
    report_.peak_memory_bytes =
        std::max<uint64_t>(report_.peak_memory_bytes, static_cast<uint64_t>(usage.ru_maxrss) << 10);
    report_.kind = MessageKind::kEnded;
  }

  static uint64_t cgroup_cpu_ns() {
    uint64_t usage_us = read_counter(kCpuFd, "usage_usec");
    return usage_us != 0 ? usage_us * 1000 : read_counter(kCpuFd, nullptr);
  }

  static timespec now_plus(int ms) {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += static_cast<long>(ms) * 1'000'000;
    return t;
  }

  static int milliseconds_until(const timespec& t) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int>((t.tv_sec - now.tv_sec) * 1000 +
                            (t.tv_nsec - now.tv_nsec + 999'999) / 1'000'000);
  }

  const Plan& plan_;
  pid_t payload_;
  int listener_;
  Stream out_;
  Stream err_;
  int signals_;
  uint64_t output_bytes_ = 0;
  bool over_ = false;
  Message report_;
};

int signal_descriptor() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

Message start_and_watch(const LoadedPlan& loaded, uint32_t abi) {
  int out[2];
  int err[2];
  int channel[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0 ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0) {
    fail(kControlFd, Step::kFds);
  }
  int signals = signal_descriptor();
  pid_t payload = ::fork();
  if (payload < 0) fail(kControlFd, Step::kExec);
  if (payload == 0) run_payload(loaded, {out[1], err[1], kControlFd, channel[1]}, abi);
  for (int fd : {out[1], err[1], channel[1]}) ::close(fd);
  for (uint32_t i = 0; i < loaded.plan->fd_count; ++i) ::close(loaded.plan->fds[i].from);
  for (int fd : {out[0], err[0]}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  int listener = receive_descriptor(channel[0]);
  ::close(channel[0]);
  Watch watch(*loaded.plan, payload, listener, Stream{out[0], kOutFd}, Stream{err[0], kErrFd},
              signals);
  return watch.run();
}

int run() {
  LoadedPlan loaded = load_plan();
  const Plan& plan = *loaded.plan;
  // If the machine itself runs out of memory, jails go first.
  int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  ssize_t ignored = ::write(score, "1000", 4);
  ::close(score);
  if (plan.joins_job != 0 && join_job() != 0) fail(kControlFd, Step::kNamespaces);
  Message ready;
  ready.missing_layers = tighten_mounts(plan);
  uint32_t abi = (plan.without_layers & kLandlock) != 0 ? 0 : landlock_abi();
  ready.landlock_abi = abi;
  if (abi == 0) ready.missing_layers |= kNoLandlock;
  if (fix_file_times() != 0) fail(kControlFd, Step::kMounts);
  if (drop_capabilities() != 0 || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    fail(kControlFd, Step::kCapabilities);
  }
  ::signal(SIGPIPE, SIG_IGN);
  if (::write(kControlFd, &ready, sizeof ready) != sizeof ready) return 125;
  char go = 0;
  if (::read(kControlFd, &go, 1) != 1) return 125;
  Message report = start_and_watch(loaded, abi);
  ignored = ::write(kControlFd, &report, sizeof report);
  (void)ignored;
  return 0;
}

}  // namespace
}  // namespace cb::box

// With an argument it is a payload that only waits, and so keeps a job's namespaces alive.
int main(int argc, char**) { return argc > 1 ? ::pause() : cb::box::run(); }
