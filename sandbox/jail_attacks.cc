// What a hostile program does to the machine that runs it, one way for each name. jail_test runs
// every one and checks how the jail ends it.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace {

constexpr size_t kMiB = 1 << 20;

void fill(int fd, size_t bytes) {
  static char block[kMiB];
  std::memset(block, 'x', sizeof block);
  for (size_t written = 0; written < bytes; written += sizeof block) {
    if (::write(fd, block, sizeof block) < 0) std::exit(1);
  }
}

int fork_bomb() {
  while (true) {
    if (::fork() == 0) continue;
  }
}

int thread_bomb() {
  while (true) std::thread([] { ::pause(); }).detach();
}

int memory_bomb() {
  while (true) {
    void* block =
        ::mmap(nullptr, 16 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return 1;
    std::memset(block, 1, 16 * kMiB);
  }
}

int shared_memory_bomb() {
  while (true) {
    void* block =
        ::mmap(nullptr, 16 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return 1;
    std::memset(block, 1, 16 * kMiB);
  }
}

// Many small eaters, each far below the cap of one process.
int memory_by_children() {
  for (int child = 0; child < 40; ++child) {
    if (::fork() == 0) {
      void* block =
          ::mmap(nullptr, 32 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memset(block, 1, 32 * kMiB);
      ::pause();
    }
  }
  ::pause();
  return 0;
}

// The child is killed, the parent shrugs.
int memory_in_child_only() {
  pid_t child = ::fork();
  if (child == 0) memory_bomb();
  ::waitpid(child, nullptr, 0);
  return 0;
}

// Reserving address space is what a device runtime does, and costs nothing.
int reserve_terabytes() {
  void* space = ::mmap(nullptr, size_t{4} << 40, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return space == MAP_FAILED ? 1 : 0;
}

int flood(int fd) {
  while (true) fill(fd, 64 * kMiB);
}

int big_file() {
  fill(::open("/tmp/big", O_WRONLY | O_CREAT, 0600), 4096 * kMiB);
  return 0;
}

int sparse_file() {
  return ::ftruncate(::open("/tmp/sparse", O_WRONLY | O_CREAT, 0600), off_t{1} << 40) == 0 ? 0 : 1;
}

int many_files() {
  for (int index = 0; index < 100'000; ++index) {
    std::string path = "/tmp/f" + std::to_string(index);
    if (::open(path.c_str(), O_WRONLY | O_CREAT, 0600) < 0) {
      // Out of descriptors is not out of files.
      ::syscall(SYS_close_range, 3u, ~0u, 0u);
      if (::open(path.c_str(), O_WRONLY | O_CREAT, 0600) < 0) return 1;
    }
  }
  return 0;
}

int spin() {
  volatile unsigned long turns = 0;
  while (true) turns = turns + 1;
}

int spin_ignoring_sigxcpu() {
  ::signal(SIGXCPU, SIG_IGN);
  return spin();
}

int ignore_everything() {
  for (int signal = 1; signal < 65; ++signal) ::signal(signal, SIG_IGN);
  ::syscall(SYS_close_range, 0u, ~0u, 0u);
  while (true) ::pause();
}

// A daemon that keeps stdout open must not delay the end.
int daemonise() {
  for (int index = 0; index < 20; ++index) {
    if (::fork() == 0) {
      ::setsid();
      if (::fork() != 0) ::_exit(0);
      for (int signal = 1; signal < 65; ++signal) ::signal(signal, SIG_IGN);
      while (true) ::pause();
    }
  }
  return 7;
}

int stop_self() {
  ::raise(SIGSTOP);
  return 0;
}

int kill_everybody() {
  ::kill(1, SIGKILL);
  ::kill(1, SIGSTOP);
  ::kill(::getppid(), SIGKILL);
  ::kill(-1, SIGKILL);
  return 9;
}

int ptrace_init() {
  ::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr);
  return 0;
}

// The parent hides what happened to its child.
int ptrace_in_child() {
  pid_t child = ::fork();
  if (child == 0) ::_exit(ptrace_init());
  ::waitpid(child, nullptr, 0);
  return 0;
}

int old_syscall() {
  long result = 20;  // getpid in the 32-bit table
  asm volatile("int $0x80" : "+a"(result) : : "memory");
  return result > 0 ? 0 : 1;
}

int exit_like_a_signal() { return 137; }

int crash() {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
  return 0;
}

int overflow_stack(int depth) {
  volatile char frame[65536];
  frame[0] = static_cast<char>(depth);
  if (depth == 1 << 20) return 0;  // Never reached: 64 GiB of stack.
  return overflow_stack(depth + 1) + frame[0];
}

int raise_limits() {
  rlimit all{RLIM_INFINITY, RLIM_INFINITY};
  return ::setrlimit(RLIMIT_NOFILE, &all) == 0 || ::setrlimit(RLIMIT_CORE, &all) == 0 ? 0 : 1;
}

using Attacks = std::map<std::string, std::function<int()>>;

Attacks attacks() {
  return {
      {"crash", crash},
      {"daemonise", daemonise},
      {"exit_like_a_signal", exit_like_a_signal},
      {"flood_stderr", [] { return flood(2); }},
      {"flood_stdout", [] { return flood(1); }},
      {"fork_bomb", fork_bomb},
      {"big_file", big_file},
      {"ignore_everything", ignore_everything},
      {"kill_everybody", kill_everybody},
      {"many_files", many_files},
      {"memory_bomb", memory_bomb},
      {"memory_by_children", memory_by_children},
      {"memory_in_child_only", memory_in_child_only},
      {"old_syscall", old_syscall},
      {"overflow_stack", [] { return overflow_stack(0); }},
      {"ptrace_in_child", ptrace_in_child},
      {"ptrace_init", ptrace_init},
      {"raise_limits", raise_limits},
      {"reserve_terabytes", reserve_terabytes},
      {"shared_memory_bomb", shared_memory_bomb},
      {"sparse_file", sparse_file},
      {"spin", spin},
      {"spin_ignoring_sigxcpu", spin_ignoring_sigxcpu},
      {"stop_self", stop_self},
      {"thread_bomb", thread_bomb},
  };
}

}  // namespace

int main(int argc, char** argv) {
  Attacks known = attacks();
  auto attack = argc == 2 ? known.find(argv[1]) : known.end();
  return attack == known.end() ? 120 : attack->second();
}
