#include "harness/build/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "harness/build/cache.h"
#include "harness/build/compile.h"
#include "harness/build/library_check.h"
#include "harness/build/source_check.h"

namespace cb::build {
namespace {

constexpr const char* kEntryPoints[] = {"cb_setup", "cb_run", "cb_teardown"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string display_name(const std::string& jail_path, const std::vector<PlacedSource>& placed) {
  for (const PlacedSource& source : placed) {
    if (jail_path == "/box/src/" + source.jail_name) return source.display_name;
  }
  return jail_path;
}

// Before compilation: directives that would mislead what is read after it.
std::string find_forbidden_directive(const BuildRequest& request) {
  for (const SourceFile& source : request.sources) {
    for (const Directive& directive : scan_directives(source.content)) {
      if (directive.name == "line" || directive.name == "embed") {
        return fmt::format("{}:{}: #{} is not allowed in candidates", source.name, directive.line,
                           directive.name);
      }
    }
  }
  return "";
}

// Without preprocessed text, after a failed compilation, the spelling is all there is.
std::string find_forbidden_spelling(const BuildRequest& request) {
  for (const SourceFile& source : request.sources) {
    for (const Directive& directive : scan_directives(source.content)) {
      size_t end = directive.rest.find_first_of(">\"", 1);
      if (!directive.name.starts_with("include") || end == std::string::npos) continue;
      std::string name = directive.rest.substr(1, end - 1);
      if (matches_any(name, request.forbidden_includes)) {
        return fmt::format("{}:{}: {} may not be included: the task forbids it", source.name,
                           directive.line, name);
      }
    }
  }
  return "";
}

std::string find_forbidden_inclusion(const BuildRequest& request,
                                     const std::vector<PlacedSource>& placed,
                                     const Compilation& done) {
  IncludePolicy policy{request.links, request.forbidden_includes};
  size_t texts = 0;
  for (const auto& [name, content] : done.products) {
    if (!name.ends_with(".ii")) continue;
    ++texts;
    for (const Inclusion& inclusion : inclusions_from(content, "/box/src/")) {
      std::string why = why_forbidden(inclusion.header, policy);
      if (why.empty()) continue;
      return fmt::format("{}:{}: {} may not be included: {}",
                         display_name(inclusion.includer, placed), inclusion.line,
                         header_name(inclusion.header), why);
    }
  }
  if (texts < compiled_count(request.sources)) {
    throw Error(
        ErrorCode::kSystem,
        fmt::format("nvcc left the preprocessed text of {} of {} files; this version of CUDA "
                    "cannot be checked (13.0 can)",
                    texts, compiled_count(request.sources)));
  }
  return "";
}

std::string find_forbidden_device_code(const Compilation& done, const LibraryFacts& facts) {
  std::set<std::string> made;
  for (const auto& [name, content] : done.products) {
    if (name.ends_with(".ptx")) {
      std::string call = forbidden_device_call(content);
      if (!call.empty()) return call + " is not allowed";
    }
    if (name.ends_with(".fatbin")) made.insert(sha256_hex(content));
  }
  for (const std::string& digest : facts.fatbin_sha256) {
    if (!made.contains(digest)) {
      return "the library holds device code that the compiler did not make from these sources";
    }
  }
  if (!facts.stray_device_code.empty()) {
    return fmt::format("the library holds a binary kernel ({}); kernels are compiled from source",
                       facts.stray_device_code);
  }
  return "";
}

std::string find_forbidden_symbol(const BuildRequest& request, const LibraryFacts& facts) {
  for (const std::string& symbol : facts.undefined) {
    if (matches_any(symbol, request.forbidden_symbols)) {
      return fmt::format("the library uses {}, which the task forbids", symbol);
    }
  }
  return "";
}

BuildResult forbidden(std::string reason) {
  BuildResult result;
  result.outcome = BuildOutcome::kForbidden;
  result.reason = std::move(reason);
  return result;
}

BuildResult compile_error(std::string reason) {
  BuildResult result;
  result.outcome = BuildOutcome::kCompileError;
  result.reason = std::move(reason);
  return result;
}

BuildResult judge_failure(const BuildRequest& request, const BuildTools& tools,
                          const Compilation& done) {
  const JailOutcome& outcome = done.jail.outcome;
  if (outcome.killed_for_syscall) {
    return forbidden("the compiler was made to call " + outcome.syscall_name);
  }
  BuildResult result;
  if (done.jail.timed_out || outcome.limit == LimitHit::kCpu) {
    result.outcome = BuildOutcome::kTimeout;
    result.reason = fmt::format("the compiler did not finish within {} s", tools.timeout_ms / 1000);
    return result;
  }
  if (outcome.limit == LimitHit::kOutput) {
    return compile_error(
        fmt::format("the compiler printed more than {}", format_bytes(tools.limits.output_bytes)));
  }
  if (outcome.limit != LimitHit::kNone) {
    result.outcome = BuildOutcome::kLimit;
    result.limit = outcome.limit;
    result.reason = fmt::format("the compiler reached its limit: {}", to_string(outcome.limit));
    return result;
  }
  std::string reason = find_forbidden_spelling(request);
  if (!reason.empty()) return forbidden(reason);
  if (done.log.find("requires separate compilation mode") != std::string::npos) {
    return forbidden("dynamic parallelism (a kernel that launches kernels) is not allowed");
  }
  return compile_error(fmt::format("nvcc failed ({})", outcome.status.describe()));
}

BuildResult judge_library(const BuildRequest& request, const std::vector<PlacedSource>& placed,
                          const Compilation& done) {
  auto library = done.products.find("out.so");
  if (library == done.products.end()) {
    throw Error(ErrorCode::kSystem, "the compiler succeeded but left no library");
  }
  Result<LibraryFacts> facts = read_library(library->second);
  if (!facts) return forbidden(facts.error().message());
  for (const std::string& reason :
       {find_forbidden_inclusion(request, placed, done), find_forbidden_device_code(done, *facts),
        find_forbidden_symbol(request, *facts)}) {
    if (!reason.empty()) return forbidden(reason);
  }
  for (const char* entry : kEntryPoints) {
    if (std::find(facts->exported.begin(), facts->exported.end(), entry) == facts->exported.end()) {
      return compile_error(
          fmt::format("{} is not defined with C linkage; include the header of the "
                      "task's family and define it as declared there",
                      entry));
    }
  }
  BuildResult result;
  result.library = library->second;
  result.fatbin_sha256 = facts->fatbin_sha256;
  return result;
}

BuildResult build_anew(const BuildRequest& request, const BuildTools& tools) {
  std::string directive = find_forbidden_directive(request);
  if (!directive.empty()) return forbidden(directive);
  std::vector<PlacedSource> placed = place_sources(request.sources);
  Compilation done = compile(request, placed, tools);
  BuildResult result = done.products.empty() ? judge_failure(request, tools, done)
                                             : judge_library(request, placed, done);
  result.log = done.log;
  result.assurance = done.jail.outcome.assurance;
  return result;
}

}  // namespace

const char* to_string(BuildOutcome outcome) {
  switch (outcome) {
    case BuildOutcome::kOk:
      return "ok";
    case BuildOutcome::kCompileError:
      return "compile_error";
    case BuildOutcome::kForbidden:
      return "forbidden";
    case BuildOutcome::kLimit:
      return "limit";
    case BuildOutcome::kTimeout:
      return "timeout";
  }
  return "?";
}

BuildTools BuildTools::of_this_machine() {
  BuildTools tools;
  tools.cuda_folder = environment("CUDA_HOME");
  if (tools.cuda_folder.empty()) tools.cuda_folder = COMMBENCH_CUDA_HOME;
  tools.include_folder = COMMBENCH_INCLUDE_FOLDER;
  std::string cache = environment("COMMBENCH_CACHE_DIR");
  if (cache.empty() && !environment("XDG_CACHE_HOME").empty()) {
    cache = environment("XDG_CACHE_HOME") + "/commbench";
  }
  if (cache.empty() && !environment("HOME").empty())
    cache = environment("HOME") + "/.cache/commbench";
  if (!cache.empty()) tools.cache_folder = cache + "/build";
  tools.limits.memory_bytes = uint64_t{3} << 30;
  tools.limits.processes = 64;
  tools.limits.open_files = 256;
  tools.limits.file_bytes = uint64_t{256} << 20;
  tools.limits.tmp_bytes = uint64_t{512} << 20;
  tools.limits.output_bytes = uint64_t{256} << 10;
  return tools;
}

BuildResult build_candidate(const BuildRequest& request, const BuildTools& tools) {
  auto begin = std::chrono::steady_clock::now();
  auto finish = [begin](BuildResult result) {
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    result.wall_ms = spent.count();
    return result;
  };
  std::string unplaceable = why_unplaceable(request.sources);
  if (!unplaceable.empty()) return finish(compile_error(unplaceable));
  if (tools.cache_folder.empty()) return finish(build_anew(request, tools));
  BuildCache cache(tools.cache_folder);
  std::string key = cache_key(request, tools);
  if (std::optional<BuildResult> known = cache.find(key)) return finish(std::move(*known));
  BuildResult result = build_anew(request, tools);
  cache.store(key, result);
  return finish(std::move(result));
}

}  // namespace cb::build
