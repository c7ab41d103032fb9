// Tries, from inside a jail, what an attacker would try, and prints one line for each attempt:
// "name allowed" or "name denied". A line is started before its attempt, so that when the jail is
// ended for it the reader knows which one it was. `commbench-probe NAME...` tries the named ones,
// without arguments it lists all names.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

bool can_read(const char* path) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char byte = 0;
  bool readable = ::read(fd, &byte, 1) == 1;
  ::close(fd);
  return readable;
}

bool can_write(const char* path, int flags = 0) {
  int fd = ::open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool can_create(const std::string& folder) {
  std::string path = folder + "/probe-was-here";
  bool created = can_write(path.c_str(), O_CREAT | O_EXCL);
  ::unlink(path.c_str());
  return created;
}

bool can_make_socket(int family, int type, int protocol = 0) {
  int fd = ::socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool can_connect(uint32_t address) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(53);
  to.sin_addr.s_addr = htonl(address);
  bool reachable = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ||
                   errno == EINPROGRESS || errno == ETIMEDOUT;
  ::close(fd);
  return reachable;
}

bool sees_processes_of_others() {
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return false;
  int others = 0;
  while (const dirent* entry = ::readdir(proc)) {
    int pid = std::atoi(entry->d_name);
    if (pid > 0 && pid != ::getpid()) ++others;
  }
  ::closedir(proc);
  return others > 1;  // The parent, which is the probe too, may be seen.
}

bool has_stray_descriptor() {
  for (int fd = 3; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) return true;
  }
  return false;
}

bool in_child(const std::function<bool()>& attempt) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(attempt() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool lock_shared_file(int command) {
  int fd = ::open("/lib64/ld-linux-x86-64.so.2", O_RDONLY | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_RDLCK;
  bool locked = ::fcntl(fd, command, &lock) == 0;
  ::close(fd);
  return locked;
}

bool watch_shared_file() {
  int fd = ::inotify_init1(IN_CLOEXEC);
  return fd >= 0 && ::inotify_add_watch(fd, "/lib64/ld-linux-x86-64.so.2", IN_OPEN) >= 0;
}

bool loads_code_from(const char* path) {
  int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
  if (fd < 0 || ::ftruncate(fd, 4096) != 0) return false;
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  ::close(fd);
  ::unlink(path);
  return page != MAP_FAILED;
}

bool grows(int fd, size_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  bool grown = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0;
  ::close(fd);
  return grown;
}

bool grows_file(const char* path, size_t bytes) {
  int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ::unlink(path);
  return grows(fd, bytes);
}

bool makes_files(const char* prefix, int count) {
  bool made = true;
  int last = 0;
  for (; made && last < count; ++last) {
    made = ::mkdir((prefix + std::to_string(last)).c_str(), 0700) == 0;
  }
  while (last-- > 0) ::rmdir((prefix + std::to_string(last)).c_str());
  return made;
}

bool abstract_connect(const char* name) {
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strcpy(to.sun_path + 1, name);
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(name));
  bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&to), length) == 0;
  ::close(fd);
  return connected;
}

bool has_capability() {
  for (int cap = 0; cap < 64; ++cap) {
    if (::prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1) return true;
  }
  return false;
}

bool raw_syscall(long number, long a = 0, long b = 0, long c = 0) {
  return ::syscall(number, a, b, c) >= 0;
}

struct Attempt {
  const char* name;
  std::function<bool()> succeeds;
};

std::vector<Attempt> file_attempts() {
  return {
      {"read_etc_passwd", [] { return can_read("/etc/passwd"); }},
      {"read_etc_shadow", [] { return can_read("/etc/shadow"); }},
      {"read_root_home", [] { return ::access("/root", F_OK) == 0; }},
      {"read_homes", [] { return ::access("/home", F_OK) == 0; }},
      {"read_init_environment", [] { return can_read("/proc/1/environ"); }},
      {"read_init_memory", [] { return ::open("/proc/1/mem", O_RDWR) >= 0; }},
      {"read_init_maps", [] { return can_read("/proc/1/maps"); }},
      {"see_other_processes", sees_processes_of_others},
      {"read_machine_load", [] { return can_read("/proc/loadavg"); }},
      {"read_machine_memory", [] { return can_read("/proc/meminfo"); }},
      {"read_kernel_log", [] { return can_read("/proc/kmsg"); }},
      {"read_cgroups", [] { return ::access("/sys/fs/cgroup/memory", F_OK) == 0; }},
      {"see_sys", [] { return ::access("/sys/kernel", F_OK) == 0; }},
      {"see_planted_tmp_file", [] { return ::access("/tmp/commbench-planted", F_OK) == 0; }},
      {"see_planted_shm_file", [] { return ::access("/dev/shm/commbench-planted", F_OK) == 0; }},
      {"stray_descriptors", has_stray_descriptor},
      {"write_root", [] { return can_create("/"); }},
      {"write_usr_lib", [] { return can_create("/usr/lib"); }},
      {"write_dev", [] { return can_create("/dev"); }},
      {"write_box", [] { return can_create("/box"); }},
      {"overwrite_own_program", [] { return can_write("/proc/self/exe"); }},
      {"write_tmp", [] { return can_create("/tmp"); }},
      {"write_shm", [] { return can_create("/dev/shm"); }},
      {"fill_tmp", [] { return grows_file("/tmp/fill", size_t{300} << 20); }},
      {"fill_shm", [] { return grows_file("/dev/shm/fill", size_t{100} << 20); }},
      {"fill_memfd", [] { return grows(::memfd_create("fill", 0), size_t{300} << 20); }},
      {"make_many_files", [] { return makes_files("/tmp/many", 10'000); }},
      {"symlink_in_tmp", [] { return ::symlink("/etc/passwd", "/tmp/link") == 0; }},
      {"fifo_in_tmp", [] { return ::mkfifo("/tmp/fifo", 0600) == 0; }},
      {"device_in_tmp", [] { return ::mknod("/tmp/sda", S_IFBLK | 0600, 8 << 8) == 0; }},
      {"code_from_tmp", [] { return loads_code_from("/tmp/code"); }},
      {"setuid_bit", [] { return can_write("/tmp/s", O_CREAT) && ::chmod("/tmp/s", 04755) == 0; }},
  };
}

std::vector<Attempt> kernel_attempts() {
  return {
      {"write_core_pattern", [] { return can_write("/proc/sys/kernel/core_pattern"); }},
      {"write_hostname", [] { return can_write("/proc/sys/kernel/hostname"); }},
      {"write_sysrq", [] { return can_write("/proc/sysrq-trigger"); }},
      {"sethostname", [] { return ::sethostname("evil", 4) == 0; }},
      {"become_root", [] { return ::setuid(0) == 0; }},
      {"capabilities", has_capability},
      {"unshare_user", [] { return ::unshare(CLONE_NEWUSER) == 0; }},
      {"clone_user",
       [] { return in_child([] { return raw_syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD); }); }},
      {"clone3", [] { return raw_syscall(SYS_clone3, 0, 0) || errno != ENOSYS; }},
      {"setns", [] { return ::setns(0, 0) == 0; }},
      {"mount", [] { return ::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0; }},
      {"umount", [] { return ::umount2("/tmp", MNT_DETACH) == 0; }},
      {"open_tree", [] { return raw_syscall(SYS_open_tree, AT_FDCWD, long("/"), 1); }},
      {"pivot_root", [] { return raw_syscall(SYS_pivot_root, long("/"), long("/")); }},
      {"chroot", [] { return ::chroot("/tmp") == 0; }},
      {"ptrace_init", [] { return ::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr) == 0; }},
      {"read_process_memory",
       [] {
         int value = 1, copy = 0;
         iovec to{&copy, sizeof copy}, from{&value, sizeof value};
         return ::process_vm_readv(::getppid(), &to, 1, &from, 1, 0) >= 0 || errno != ENOSYS;
       }},
      {"pidfd_getfd", [] { return raw_syscall(SYS_pidfd_getfd, 0, 0, 0) || errno != ENOSYS; }},
      {"kcmp", [] { return raw_syscall(SYS_kcmp, ::getpid(), ::getpid(), 0); }},
      {"bpf", [] { return raw_syscall(SYS_bpf, 0, 0, 0) || errno == EINVAL; }},
      {"perf_event_open", [] { return raw_syscall(SYS_perf_event_open); }},
      {"userfaultfd", [] { return raw_syscall(SYS_userfaultfd, 1); }},
      {"io_uring",
       [] {
         io_uring_params params{};
         return raw_syscall(SYS_io_uring_setup, 4, long(&params));
       }},
      {"add_key", [] { return raw_syscall(SYS_add_key, long("user"), long("k"), long("v")); }},
      {"keyctl", [] { return raw_syscall(SYS_keyctl, 0, -3, 0); }},
      {"open_by_handle", [] { return raw_syscall(SYS_open_by_handle_at, AT_FDCWD, 0, 0); }},
      {"name_to_handle", [] { return raw_syscall(SYS_name_to_handle_at) || errno != ENOSYS; }},
      {"personality", [] { return ::personality(ADDR_NO_RANDOMIZE) >= 0; }},
      {"modify_ldt", [] { return raw_syscall(SYS_modify_ldt, 0, 0, 0); }},
      {"vmsplice", [] { return raw_syscall(SYS_vmsplice, -1, 0, 0) || errno != ENOSYS; }},
      {"raise_priority", [] { return ::setpriority(PRIO_PROCESS, 0, -5) == 0; }},
      {"real_time",
       [] {
         sched_param param{};
         param.sched_priority = 1;
         return ::sched_setscheduler(0, SCHED_FIFO, &param) == 0;
       }},
      {"lock_much_memory",
       [] {
         void* block =
             ::mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return ::mlock(block, 64 << 20) == 0;
       }},
      {"raise_file_cap",
       [] {
         rlimit all{RLIM_INFINITY, RLIM_INFINITY};
         return ::setrlimit(RLIMIT_FSIZE, &all) == 0;
       }},
      {"core_dump",
       [] {
         rlimit core{4096, 4096};
         return ::setrlimit(RLIMIT_CORE, &core) == 0;
       }},
      {"device_memory", [] { return ::access("/dev/mem", F_OK) == 0; }},
      {"device_kvm", [] { return ::access("/dev/kvm", F_OK) == 0; }},
      {"device_fuse", [] { return ::access("/dev/fuse", F_OK) == 0; }},
      {"device_tty", [] { return ::open("/dev/tty", O_RDWR) >= 0; }},
      {"device_zero", [] { return can_read("/dev/zero"); }},
      {"terminal_injection", [] { return raw_syscall(SYS_ioctl, 0, 0x5412, long("x")); }},
      {"x32_syscall", [] { return raw_syscall(0x40000000 | SYS_getpid); }},
      {"i386_syscall",
       [] {
         long result = 20;
         asm volatile("int $0x80" : "+a"(result) : : "memory");
         return result > 0;
       }},
  };
}

std::vector<Attempt> channel_attempts() {
  return {
      {"socket_unix", [] { return can_make_socket(AF_UNIX, SOCK_STREAM); }},
      {"socket_inet", [] { return can_make_socket(AF_INET, SOCK_STREAM); }},
      {"socket_inet6", [] { return can_make_socket(AF_INET6, SOCK_DGRAM); }},
      {"socket_netlink", [] { return can_make_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE); }},
      {"socket_packet", [] { return can_make_socket(AF_PACKET, SOCK_RAW); }},
      {"socket_alg", [] { return can_make_socket(AF_ALG, SOCK_SEQPACKET); }},
      {"socket_vsock", [] { return can_make_socket(AF_VSOCK, SOCK_STREAM); }},
      {"connect_to_network", [] { return can_connect(0x08080808); }},
      {"connect_to_planted_abstract", [] { return abstract_connect("commbench-planted"); }},
      {"socketpair",
       [] {
         int pair[2];
         return ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
       }},
      {"lock_shared_file", [] { return lock_shared_file(F_SETLK); }},
      {"ofd_lock_shared_file", [] { return lock_shared_file(F_OFD_SETLK); }},
      {"flock_shared_file",
       [] { return ::flock(::open("/lib64/ld-linux-x86-64.so.2", O_RDONLY), LOCK_SH) == 0; }},
      {"lease",
       [] {
         return ::fcntl(::open("/tmp/l", O_RDONLY | O_CREAT, 0600), F_SETLEASE, F_RDLCK) == 0;
       }},
      {"watch_shared_file", watch_shared_file},
      {"page_cache_residency",
       [] {
         unsigned char resident = 0;
         void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return ::mincore(page, 4096, &resident) == 0;
       }},
      {"sysv_shared_memory", [] { return ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0; }},
      {"posix_queue", [] { return raw_syscall(SYS_mq_open, long("/q"), O_CREAT | O_RDWR, 0600); }},
      {"signal_init", [] { return ::kill(1, SIGTERM) == 0 && ::kill(1, 0) != 0; }},
      {"memfd", [] { return ::memfd_create("m", 0) >= 0; }},
      {"fork", [] { return in_child([] { return true; }); }},
      {"executable_memory",
       [] {
         return ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
       }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Attempt> attempts = file_attempts();
  for (auto* more : {kernel_attempts, channel_attempts}) {
    for (Attempt& attempt : more()) attempts.push_back(std::move(attempt));
  }
  if (argc == 1) {
    for (const Attempt& attempt : attempts) std::printf("%s\n", attempt.name);
    return 0;
  }
  for (int index = 1; index < argc; ++index) {
    for (const Attempt& attempt : attempts) {
      if (std::strcmp(attempt.name, argv[index]) != 0) continue;
      std::printf("%s ", attempt.name);
      std::fflush(stdout);
      bool allowed = in_child(attempt.succeeds);
      std::printf("%s\n", allowed ? "allowed" : "denied");
      std::fflush(stdout);
    }
  }
  return 0;
}
