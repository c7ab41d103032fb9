// The file tree of a jail. Programs see the machine's libraries read-only and nothing else of it:
// no /etc but the loader's cache, no home, no /usr/share, no shells for candidates. A harness that
// runs as root jails as a box user, who may be unable to reach the checkout (/root is closed to
// others); such files are copied in through descriptors that root has opened.
#include "sandbox/box_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "sandbox/box_protocol.h"
#include "sandbox/job_namespaces.h"

namespace cb {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxCopiedBytes = uintmax_t{64} << 20;
constexpr unsigned kBoxUsers = 64;
constexpr uid_t kFirstBoxUser = 60000;

std::string find_bubblewrap() {
  for (const char* path : {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  throw Error(ErrorCode::kRefused,
              "no bubblewrap (bwrap) in /usr/bin or /usr/local/bin, so candidates cannot be jailed "
              "and will not be run; ./setup.sh installs it");
}

bool others_can(const fs::path& path, mode_t bits) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && (info.st_mode & bits) == bits;
}

// Whether a user who owns nothing can open `path`.
bool is_public(const fs::path& path) {
  for (fs::path folder = path.parent_path(); folder != folder.root_path();
       folder = folder.parent_path()) {
    if (!others_can(folder, S_IXOTH)) return false;
  }
  return others_can(path, fs::is_directory(path) ? S_IROTH | S_IXOTH : S_IROTH);
}

// Whether this user id exists in our user namespace. Lines of uid_map: first inside, first
// outside, count.
bool is_mapped(uid_t user) {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  while (map >> inside >> outside >> count) {
    if (user >= inside && user - inside < count) return true;
  }
  return false;
}

class CommandBuilder {
 public:
  explicit CommandBuilder(bool private_paths_need_copies)
      : private_paths_need_copies_(private_paths_need_copies) {}

  void add(std::initializer_list<std::string> words) {
    command_.argv.insert(command_.argv.end(), words);
  }

  void show_if_present(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return;
    if (S_ISLNK(info.st_mode)) {
      add({"--symlink", fs::read_symlink(path).string(), path});
    } else {
      add({"--ro-bind", path, path});
    }
  }

  void show(const std::string& host_path, const std::string& jail_path) {
    check_plain(jail_path);
    std::error_code error;
    fs::path real = fs::canonical(host_path, error);
    if (error) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} cannot be shown in a jail: {}", host_path, error.message()));
    }
    if (!private_paths_need_copies_ || is_public(real)) {
      add({"--ro-bind", real.string(), jail_path});
    } else if (fs::is_directory(real)) {
      for (const auto& entry : fs::recursive_directory_iterator(real)) {
        if (entry.is_regular_file()) {
          copy(entry.path(), (jail_path / entry.path().lexically_relative(real)).string());
        }
      }
    } else {
      copy(real, jail_path);
    }
  }

  void write(const std::string& jail_path, const std::string& content) {
    check_plain(jail_path);
    UniqueFd file(::memfd_create("file", MFD_CLOEXEC));
    if (!file ||
        ::write(file.get(), content.data(), content.size()) !=
            static_cast<ssize_t>(content.size()) ||
        ::lseek(file.get(), 0, SEEK_SET) != 0) {
      throw system_error("write " + jail_path + " for a jail");
    }
    add_copy(std::move(file), jail_path, "0444");
  }

  BoxCommand take() { return std::move(command_); }

 private:
  static void check_plain(const std::string& jail_path) {
    if (jail_path.empty() || jail_path.front() != '/' ||
        jail_path.find("/../") != std::string::npos) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("jail path \"{}\" is not absolute and plain", jail_path));
    }
  }

  void add_copy(UniqueFd file, const std::string& jail_path, const char* permissions) {
    int number = kFirstCopyFd + static_cast<int>(command_.copies.size());
    add({"--perms", permissions, "--file", std::to_string(number), jail_path});
    command_.copies.push_back(std::move(file));
  }

  void copy(const fs::path& from, const std::string& to) {
    UniqueFd fd(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) throw system_error("open " + from.string());
    copied_bytes_ += fs::file_size(from);
    if (copied_bytes_ > kMaxCopiedBytes) {
      throw Error(
          ErrorCode::kUsage,
          fmt::format("{} is in a folder that the jail's user cannot read, and is too large "
                      "to copy in (more than {} MiB in all); open its folders to others "
                      "(chmod o+rx), or run as an ordinary user",
                      from.string(), kMaxCopiedBytes >> 20));
    }
    bool executable = others_can(from, S_IXOTH) || ::access(from.c_str(), X_OK) == 0;
    add_copy(std::move(fd), to, executable ? "0555" : "0444");
  }

  bool private_paths_need_copies_;
  uintmax_t copied_bytes_ = 0;
  BoxCommand command_;
};

void add_namespaces(CommandBuilder& builder, const JailSpec& spec) {
  std::string inside = std::to_string(box::kInsideUid);
  if (spec.job != nullptr) {
    builder.add({"--userns", std::to_string(box::kUserNamespaceFd)});
  } else {
    builder.add({"--unshare-user", "--unshare-ipc"});
    if ((spec.without_layers & kNetworkNamespace) == 0) builder.add({"--unshare-net"});
  }
  builder.add({"--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "box",
               "--uid", inside, "--gid", inside});
  // For boxinit, which mounts, watches and then gives them up: the payload has none.
  builder.add({"--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SYS_PTRACE", "--cap-add",
               "CAP_SYS_RESOURCE", "--cap-add", "CAP_SETPCAP", "--die-with-parent", "--as-pid-1"});
}

void add_machine_files(CommandBuilder& builder, JailProfile profile) {
  for (const char* path : {"/usr/lib", "/usr/lib64", "/usr/lib32", "/lib", "/lib64"}) {
    builder.show_if_present(path);
  }
  builder.add({"--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"});
  if (profile != JailProfile::kBuild) return;
  for (const char* path : {"/usr/bin", "/usr/include", "/usr/libexec", "/bin"}) {
    builder.show_if_present(path);
  }
  // Debian's cc, c++ and ld may be links into here.
  builder.add({"--ro-bind-try", "/etc/alternatives", "/etc/alternatives"});
}

void add_devices(CommandBuilder& builder, const JailSpec& spec) {
  builder.add({"--perms", "0755", "--size", "65536", "--tmpfs", "/dev"});
  std::vector<std::string> devices = {"/dev/null"};
  // An endless file is a way to make a compiler use up its memory.
  if (spec.profile != JailProfile::kBuild) {
    devices.insert(devices.end(), {"/dev/zero", "/dev/random", "/dev/urandom"});
  }
  devices.insert(devices.end(), spec.devices.begin(), spec.devices.end());
  for (const std::string& path : devices) builder.add({"--dev-bind", path, path});
  builder.add({"--symlink", "/proc/self/fd", "/dev/fd"});
}

}  // namespace

std::optional<Credentials> box_credentials(unsigned box_slot) {
  if (::geteuid() != 0) return std::nullopt;
  if (box_slot >= kBoxUsers) {
    throw Error(ErrorCode::kUsage,
                fmt::format("box slot {} of {}; one machine runs at most {} jails at a time",
                            box_slot, kBoxUsers, kBoxUsers));
  }
  uid_t user = kFirstBoxUser + box_slot;
  if (!is_mapped(user)) {
    throw Error(ErrorCode::kRefused,
                fmt::format("we are root in a user namespace and cannot become user {}, as jails "
                            "must; run as an ordinary user, or map the ids up to {} as well",
                            user, kFirstBoxUser + kBoxUsers - 1));
  }
  return Credentials{user, user};
}

BoxCommand box_command(const JailSpec& spec, const std::string& boxinit) {
  if (!spec.devices.empty() && spec.scope != JailScope::kJob) {
    throw Error(ErrorCode::kUsage, "device nodes need job scope: " + spec.devices.front());
  }
  if (spec.job != nullptr && spec.scope != JailScope::kJob) {
    throw Error(ErrorCode::kUsage, "a jail of rank scope cannot join a job's namespaces");
  }
  CommandBuilder builder(::geteuid() == 0);
  builder.add({find_bubblewrap()});
  add_namespaces(builder, spec);
  add_machine_files(builder, spec.profile);
  builder.add({"--proc", "/proc"});
  add_devices(builder, spec);
  std::string tmp_bytes = std::to_string(spec.limits.tmp_bytes);
  std::string shm_bytes = std::to_string(spec.limits.shm_bytes);
  builder.add({"--perms", "1777", "--size", tmp_bytes, "--tmpfs", "/tmp"});
  if (spec.job != nullptr) {
    builder.add({"--bind", spec.job->shared_folder(), "/dev/shm"});
  } else {
    builder.add({"--perms", "1777", "--size", shm_bytes, "--tmpfs", "/dev/shm"});
  }
  // CUDA's driver finds its devices through sysfs; the cgroups in there are no business of its.
  if (spec.scope == JailScope::kJob) {
    builder.add({"--ro-bind", "/sys", "/sys", "--size", "4096", "--tmpfs", "/sys/fs"});
    builder.add({"--remount-ro", "/sys/fs"});
  }
  builder.show(boxinit, kBoxinitInside);
  for (const auto& [host_path, jail_path] : spec.read_only) builder.show(host_path, jail_path);
  for (const auto& [jail_path, content] : spec.files) builder.write(jail_path, content);
  builder.add({"--remount-ro", "/dev", "--remount-ro", "/", "--", kBoxinitInside});
  return builder.take();
}

}  // namespace cb
