// Jails get cgroups below our own, never elsewhere. Version 1 (a hierarchy for each controller) is
// usable by root; version 2 by anybody whose cgroup was delegated. Version 2 forbids processes in a
// cgroup that has children with limits, so when we are alone in ours we first move into a leaf.
#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "sandbox/box_watch.h"

namespace cb {
namespace {

constexpr const char* kSupervisorLeaf = "/commbench-supervisor";
constexpr const char* kChildPrefix = "commbench-";

bool write_control(const std::string& path, const std::string& text) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

UniqueFd open_counter(const std::string& folder, const char* file) {
  if (folder.empty()) return UniqueFd();
  return UniqueFd(::open((folder + "/" + file).c_str(), O_RDONLY | O_CLOEXEC));
}

bool has_word(const std::string& list, const std::string& word, char separator) {
  std::vector<std::string> words = split(list, separator);
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct Mount {
  std::string root, point, type, options;
};

// "ID PARENT MAJ:MIN ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE SUPER_OPTIONS"
std::vector<Mount> parse_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : split(mountinfo, '\n')) {
    std::vector<std::string> fields = split(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    mounts.push_back({fields[3], fields[4], dash[1], dash[3]});
  }
  return mounts;
}

// The folder of cgroup `path` under a mount whose root may itself be below the hierarchy's.
std::string folder_in(const Mount& mount, const std::string& path) {
  std::string below = path;
  if (mount.root != "/") {
    if (path.rfind(mount.root, 0) != 0) return "";
    below = path.substr(mount.root.size());
  }
  return below == "/" ? mount.point : mount.point + below;
}

bool is_usable(const std::string& folder) {
  return !folder.empty() && ::access(folder.c_str(), W_OK) == 0;
}

// Makes a folder for the jail, or says why not.
std::optional<std::string> make_child(const std::string& parent, const std::string& name) {
  std::string child = parent + "/" + name;
  if (!is_usable(parent) || ::mkdir(child.c_str(), 0755) != 0) return std::nullopt;
  return child;
}

std::string why_unusable(const std::string& folder, const char* controller) {
  return folder.empty() ? fmt::format("no {} cgroup (not mounted)", controller)
                        : fmt::format("no {} cgroup ({} is not ours to write)", controller, folder);
}

// Where version 2 jails go, with the controllers enabled for them; or why there is no such place.
Result<std::string> prepare_version_2(std::string base) {
  if (base.ends_with(kSupervisorLeaf)) {
    base.resize(base.size() - std::string(kSupervisorLeaf).size());
  }
  if (!is_usable(base)) {
    return failure(ErrorCode::kSystem, why_unusable(base, "memory"));
  }
  auto words = [&base](const char* file) {
    Result<std::string> text = read_file(base + "/" + file);
    return text ? std::string(trim(*text)) : std::string();
  };
  auto has_both = [](const std::string& list) {
    return has_word(list, "memory", ' ') && has_word(list, "pids", ' ');
  };
  if (has_both(words("cgroup.subtree_control"))) return base;
  if (!has_both(words("cgroup.controllers"))) {
    return failure(ErrorCode::kSystem,
                   fmt::format("no memory cgroup ({} has no memory and pids controllers)", base));
  }
  if (words("cgroup.procs") != fmt::format("{}", ::getpid())) {
    return failure(ErrorCode::kSystem,
                   "no memory cgroup (other processes share ours; systemd-run --user --scope "
                   "-p Delegate=yes gives one)");
  }
  std::string leaf = base + kSupervisorLeaf;
  if ((::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) ||
      !write_control(leaf + "/cgroup.procs", "0") ||
      !write_control(base + "/cgroup.subtree_control", "+memory +pids")) {
    return failure(ErrorCode::kSystem,
                   fmt::format("no memory cgroup ({} could not be divided)", base));
  }
  return base;
}

// A harness that was killed could not remove its children. The kernel refuses to remove a folder
// in use; the age spares one that another harness has made and not yet filled.
void remove_leftovers(const std::string& parent) {
  constexpr auto kOld = std::chrono::minutes(1);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    std::string name = entry.path().filename().string();
    auto written = entry.last_write_time(error);
    if (error || name.rfind(kChildPrefix, 0) != 0) continue;
    if (std::filesystem::file_time_type::clock::now() - written > kOld) {
      ::rmdir(entry.path().c_str());
    }
  }
}

const CgroupLayout& own_layout() {
  static const CgroupLayout layout = [] {
    Result<std::string> self = read_file("/proc/self/cgroup");
    Result<std::string> mounts = read_file("/proc/self/mountinfo");
    CgroupLayout found = self && mounts ? locate_cgroups(*self, *mounts) : CgroupLayout{};
    for (const std::string& folder : {found.memory_folder, found.pids_folder, found.cpu_folder}) {
      remove_leftovers(folder);
    }
    return found;
  }();
  return layout;
}

void remove_folder(const std::string& folder) {
  if (folder.empty()) return;
  // The kernel frees a cgroup a moment after its last process was reaped.
  for (int attempt = 0; attempt < 50 && ::rmdir(folder.c_str()) != 0 && errno == EBUSY; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

CgroupLayout locate_cgroups(const std::string& self_cgroup, const std::string& mountinfo) {
  std::vector<Mount> mounts = parse_mounts(mountinfo);
  CgroupLayout layout;
  std::string unified_path;
  for (const std::string& line : split(self_cgroup, '\n')) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controllers.empty()) unified_path = path;
    for (const Mount& mount : mounts) {
      if (mount.type != "cgroup") continue;
      auto take = [&](const char* controller, std::string& folder) {
        if (has_word(controllers, controller, ',') && has_word(mount.options, controller, ',')) {
          folder = folder_in(mount, path);
          layout.version = 1;
        }
      };
      take("memory", layout.memory_folder);
      take("pids", layout.pids_folder);
      take("cpuacct", layout.cpu_folder);
    }
  }
  if (layout.version == 1 || unified_path.empty()) return layout;
  for (const Mount& mount : mounts) {
    if (mount.type != "cgroup2") continue;
    std::string folder = folder_in(mount, unified_path);
    return {2, folder, folder, folder};
  }
  return layout;
}

Cgroup Cgroup::create(uint64_t memory_bytes, unsigned processes) {
  static std::atomic<unsigned> counter{0};
  const CgroupLayout& layout = own_layout();
  std::string name = fmt::format("{}{}-{}", kChildPrefix, ::getpid(), counter++);
  std::string memory_text = fmt::format("{}", memory_bytes);
  // boxinit is one of the tasks here; boxinit's watchdog ends the jail at `processes` itself.
  std::string pids_text = fmt::format("{}", processes + 1);
  Cgroup group;
  group.version_ = layout.version;
  if (layout.version == 2) {
    Result<std::string> base = prepare_version_2(layout.memory_folder);
    std::optional<std::string> child = base ? make_child(*base, name) : std::nullopt;
    if (!child) {
      group.missing_ = base ? why_unusable(*base, "memory") : base.error().message();
      return group;
    }
    group.memory_ = group.pids_ = group.cpu_ = *child;
    write_control(*child + "/memory.swap.max", "0");
    write_control(*child + "/memory.oom.group", "1");
    if (!write_control(*child + "/memory.max", memory_text) ||
        !write_control(*child + "/pids.max", pids_text)) {
      group.missing_ = fmt::format("no memory cgroup ({} takes no limits)", *child);
    }
    return group;
  }
  if (auto child = make_child(layout.memory_folder, name)) {
    group.memory_ = *child;
    if (!write_control(*child + "/memory.limit_in_bytes", memory_text)) {
      group.missing_ = fmt::format("no memory cgroup ({} takes no limit)", *child);
    }
    write_control(*child + "/memory.memsw.limit_in_bytes", memory_text);
  } else {
    group.missing_ = why_unusable(layout.memory_folder, "memory");
  }
  if (auto child = make_child(layout.pids_folder, name)) {
    group.pids_ = *child;
    write_control(*child + "/pids.max", pids_text);
  } else if (group.missing_.empty()) {
    group.missing_ = why_unusable(layout.pids_folder, "pids");
  }
  if (auto child = make_child(layout.cpu_folder, name)) group.cpu_ = *child;
  return group;
}

Cgroup::~Cgroup() {
  remove_folder(memory_);
  if (version_ == 2) return;
  remove_folder(pids_);
  remove_folder(cpu_);
}

void Cgroup::swap(Cgroup& other) noexcept {
  std::swap(version_, other.version_);
  std::swap(memory_, other.memory_);
  std::swap(pids_, other.pids_);
  std::swap(cpu_, other.cpu_);
  std::swap(missing_, other.missing_);
}

void Cgroup::add(pid_t pid) const {
  std::string text = fmt::format("{}", pid);
  for (const std::string* folder : {&memory_, &pids_, &cpu_}) {
    if (folder->empty() || (version_ == 2 && folder != &memory_)) continue;
    if (!write_control(*folder + "/cgroup.procs", text)) {
      throw system_error(fmt::format("move process {} into {}", pid, *folder));
    }
  }
}

UniqueFd Cgroup::oom_file() const {
  return open_counter(memory_, version_ == 2 ? "memory.events" : "memory.oom_control");
}
UniqueFd Cgroup::pids_file() const { return open_counter(pids_, "pids.events"); }
UniqueFd Cgroup::cpu_file() const {
  return open_counter(cpu_, version_ == 2 ? "cpu.stat" : "cpuacct.usage");
}

bool Cgroup::out_of_memory() const {
  UniqueFd fd = oom_file();
  return fd && box::read_counter(fd.get(), "oom_kill") != 0;
}

uint64_t Cgroup::peak_memory_bytes() const {
  UniqueFd fd = open_counter(memory_, version_ == 2 ? "memory.peak" : "memory.max_usage_in_bytes");
  return fd ? box::read_counter(fd.get(), nullptr) : 0;
}

}  // namespace cb
