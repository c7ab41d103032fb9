#include "harness/build/compile.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/build/product.h"

namespace cb::build {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSources = 64;
constexpr size_t kMaxCompiled = 16;
constexpr size_t kMaxSourceBytes = 4 << 20;
constexpr int kProductFd = 3;
constexpr const char* kSourceFolder = "/box/src/";
constexpr const char* kProductFolder = "/tmp/out";

// Everything else in the library stays out of the host process's symbol table.
constexpr const char* kExportMap = "{ global: cb_setup; cb_run; cb_teardown; local: *; };\n";

bool is_plain_component(std::string_view name) {
  if (name.empty() || name.front() == '-' || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  });
}

bool is_plain(const std::string& name) {
  std::vector<std::string> components = split(name, '/');
  return std::all_of(components.begin(), components.end(), is_plain_component);
}

bool is_compiled(const std::string& name) {
  std::string extension = fs::path(name).extension();
  return extension == ".cu" || extension == ".cc";
}

bool is_known_kind(const std::string& name) {
  std::string extension = fs::path(name).extension();
  return is_compiled(name) || extension == ".cuh" || extension == ".h" || extension == ".hpp";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

std::string scrubbed_log(std::string log, const std::vector<PlacedSource>& placed) {
  for (const PlacedSource& source : placed) {
    if (source.jail_name == source.display_name) continue;
    replace_all(log, kSourceFolder + source.jail_name, source.display_name);
    replace_all(log, source.jail_name, source.display_name);
  }
  replace_all(log, kSourceFolder, "");
  replace_all(log, "/box/cuda/bin/../targets/x86_64-linux/include/", "");
  replace_all(log, "/box/include/", "");
  replace_all(log, std::string(kProductFolder) + "/", "");
  return log;
}

std::string link_flag(const std::string& library) {
  for (const char* known : {"cuda", "nccl", "ibverbs", "nvrtc"}) {
    if (library == known) return "-l" + library;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("cannot link \"{}\" (known: cuda, nccl, ibverbs, nvrtc)", library));
}

// "compute_90a" to "sm_90a".
std::string real_architecture(const std::string& target) {
  std::string_view version = std::string_view(target).substr(std::min<size_t>(8, target.size()));
  bool known = target.starts_with("compute_") && version.size() >= 2 && version.size() <= 4 &&
               std::all_of(version.begin(), version.end() - 1,
                           [](unsigned char c) { return std::isdigit(c) != 0; }) &&
               std::isalnum(static_cast<unsigned char>(version.back())) != 0;
  if (!known) {
    throw Error(ErrorCode::kUsage,
                fmt::format("build target \"{}\" is not of the form compute_90a", target));
  }
  return "sm_" + std::string(version);
}

void check_tools(const BuildTools& tools) {
  std::string nvcc = tools.cuda_folder + "/bin/nvcc";
  if (::access(nvcc.c_str(), X_OK) != 0) {
    throw Error(
        ErrorCode::kConfig,
        fmt::format("no nvcc at {}; set CUDA_HOME, or run ./setup.sh --cuda-from-pypi", nvcc));
  }
  if (::access("/usr/bin/g++", X_OK) != 0) {
    throw Error(ErrorCode::kConfig, "no g++ at /usr/bin/g++, which nvcc needs; run ./setup.sh");
  }
}

JailSpec jail_spec(const BuildRequest& request, const std::vector<PlacedSource>& placed,
                   const BuildTools& tools, int product_fd) {
  JailSpec spec;
  spec.profile = JailProfile::kBuild;
  spec.limits = tools.limits;
  spec.box_slot = request.box_slot;
  spec.argv = {"/box/build", std::to_string(kProductFd), kProductFolder, ".so,.fatbin,.ptx,.ii"};
  std::vector<std::string> command = compiler_command(request, placed);
  spec.argv.insert(spec.argv.end(), command.begin(), command.end());
  spec.env = {"PATH=/box/cuda/bin:/usr/bin", "HOME=/tmp", "TMPDIR=/tmp", "LANG=C", "LC_ALL=C",
              "SOURCE_DATE_EPOCH=0"};
  spec.read_only = {{tools.cuda_folder, "/box/cuda"},
                    {tools.include_folder, "/box/include"},
                    {COMMBENCH_LINK_FOLDER, "/box/link"},
                    {COMMBENCH_BOX_BUILD, "/box/build"}};
  for (size_t index = 0; index < placed.size(); ++index) {
    spec.files.emplace_back(kSourceFolder + placed[index].jail_name,
                            request.sources[index].content);
  }
  spec.files.emplace_back("/box/exports.map", kExportMap);
  spec.fds = {{product_fd, kProductFd}};
  return spec;
}

// The stream is the jail's to write: a length that does not fit ends it.
std::map<std::string, std::string> read_products(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw system_error("fstat of a build's products");
  std::string stream(static_cast<size_t>(info.st_size), '\0');
  if (::pread(fd, stream.data(), stream.size(), 0) != info.st_size) {
    throw system_error("read a build's products");
  }
  std::map<std::string, std::string> products;
  size_t at = 0;
  ProductHeader header;
  while (stream.size() - at >= sizeof header) {
    std::memcpy(&header, stream.data() + at, sizeof header);
    at += sizeof header;
    size_t left = stream.size() - at;
    if (header.name_bytes > left || header.content_bytes > left - header.name_bytes) break;
    std::string name = stream.substr(at, header.name_bytes);
    at += header.name_bytes;
    products[name] = stream.substr(at, header.content_bytes);
    at += header.content_bytes;
  }
  return products;
}

}  // namespace

std::string why_unplaceable(const std::vector<SourceFile>& sources) {
  if (sources.size() > kMaxSources) {
    return fmt::format("{} files; at most {} are allowed", sources.size(), kMaxSources);
  }
  std::set<std::string> names;
  std::set<std::string> stems;
  size_t bytes = 0;
  for (const SourceFile& source : sources) {
    bytes += source.content.size();
    if (!is_known_kind(source.name)) {
      return fmt::format("{}: only .cu, .cc, .cuh, .h and .hpp files are accepted", source.name);
    }
    if (!names.insert(source.name).second) return fmt::format("{}: given twice", source.name);
    if (is_compiled(source.name) && !stems.insert(fs::path(source.name).stem()).second) {
      return fmt::format("{}: another compiled file has the same name but for its folder or ending",
                         source.name);
    }
  }
  if (stems.empty()) return "there is no .cu or .cc file to compile";
  if (stems.size() > kMaxCompiled) {
    return fmt::format("{} files to compile; at most {} are allowed", stems.size(), kMaxCompiled);
  }
  if (bytes > kMaxSourceBytes) {
    return fmt::format("{} bytes of source; at most {} are allowed", bytes, kMaxSourceBytes);
  }
  return "";
}

size_t compiled_count(const std::vector<SourceFile>& sources) {
  return static_cast<size_t>(
      std::count_if(sources.begin(), sources.end(),
                    [](const SourceFile& source) { return is_compiled(source.name); }));
}

std::vector<PlacedSource> place_sources(const std::vector<SourceFile>& sources) {
  std::vector<PlacedSource> placed;
  for (const SourceFile& source : sources) {
    std::string renamed =
        fmt::format("cand_{}{}", placed.size(), fs::path(source.name).extension().string());
    placed.push_back({is_plain(source.name) ? source.name : renamed, source.name});
  }
  return placed;
}

std::vector<std::string> compiler_command(const BuildRequest& request,
                                          const std::vector<PlacedSource>& placed) {
  std::string architecture = fmt::format("arch={},code=[{},{}]", request.target, request.target,
                                         real_architecture(request.target));
  std::string folder = kProductFolder;
  std::vector<std::string> command = {"/box/cuda/bin/nvcc"};
  auto add = [&command](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  add({"-std=c++17", "-O3", "-lineinfo", "--extended-lambda", "--expt-relaxed-constexpr"});
  add({"-cudart", "shared", "-shared", "-nodlink", "-gencode", architecture, "-I/box/include"});
  add({"-Xcompiler", "-fPIC,-fvisibility-inlines-hidden"});
  // Some distributions drop libraries that look unused, and the driver's link stub is empty.
  add({"-Xlinker", "--version-script=/box/exports.map", "-Xlinker", "--no-as-needed"});
  // -MD makes nvcc keep the preprocessed text of .cc files as well.
  add({"--keep", "--keep-dir", folder, "-MD", "-MF", folder + "/all.d", "-o", folder + "/out.so"});
  for (const PlacedSource& source : placed) {
    if (is_compiled(source.jail_name)) command.push_back(kSourceFolder + source.jail_name);
  }
  add({"-L/box/link"});
  for (const std::string& library : request.links) command.push_back(link_flag(library));
  return command;
}

Compilation compile(const BuildRequest& request, const std::vector<PlacedSource>& placed,
                    const BuildTools& tools) {
  check_tools(tools);
  UniqueFd products(::memfd_create("products", MFD_CLOEXEC));
  if (!products) throw system_error("memfd_create");
  Compilation done;
  done.jail = run_jailed(jail_spec(request, placed, tools, products.get()), tools.timeout_ms);
  const JailOutcome& outcome = done.jail.outcome;
  if (outcome.setup_failed) {
    throw Error(ErrorCode::kSystem, "the build jail broke down: " + outcome.setup_message);
  }
  done.log = scrubbed_log(done.jail.standard_output + done.jail.standard_error, placed);
  constexpr int kToolMissing = 126;
  if (outcome.status.code.value_or(0) >= kToolMissing && *outcome.status.code <= 128) {
    throw Error(ErrorCode::kSystem,
                fmt::format("the compiler could not run in its jail ({}): {}",
                            outcome.status.describe(), printable(done.log, 500)));
  }
  if (!done.jail.timed_out && outcome.status.success()) {
    done.products = read_products(products.get());
  }
  return done;
}

}  // namespace cb::build
