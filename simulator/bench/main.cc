// commbench-sim-bench: how fast this machine simulates, in warp instructions per second, beside the
// same work as a plain C++ loop in the same run.

#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/tty.h"
#include "simulator/bench/workloads.h"

namespace cb::sim {
namespace {

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Measurement {
  double seconds = 1e30;  ///< processor time, best of the repetitions
  uint64_t warp_instructions = 0;
  Time virtual_ps = 0;

  double mwips() const { return static_cast<double>(warp_instructions) / seconds * 1e-6; }
};

Measurement simulate(const Workload& workload, const Profile& profile, bool timed,
                     int repetitions) {
  Measurement best;
  for (int i = 0; i < repetitions; ++i) {
    Workbench bench(profile, timed);
    auto is_right = workload.start(bench);
    double start = cpu_seconds();
    best.virtual_ps = bench.finish();
    best.seconds = std::min(best.seconds, cpu_seconds() - start);
    best.warp_instructions = bench.warp_instructions();
    if (!is_right()) throw Error(ErrorCode::kRemote, workload.name + " computed wrong results");
  }
  return best;
}

double run_plain(const Workload& workload, int repetitions) {
  double best = 1e30;
  auto work = workload.plain();
  for (int i = 0; i < repetitions; ++i) {
    double start = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

Json measure(const Profile& profile, const std::string& only, int repetitions) {
  Json kernels = Json::array();
  for (const Workload& workload : workloads()) {
    if (!only.empty() && workload.name != only) continue;
    Measurement functional = simulate(workload, profile, false, repetitions);
    Measurement timed = simulate(workload, profile, true, repetitions);
    double plain = run_plain(workload, repetitions);
    kernels.push_back({{"name", workload.name},
                       {"warp_instructions", functional.warp_instructions},
                       {"simulated_us", static_cast<double>(timed.virtual_ps) * 1e-6},
                       {"functional_mwips", functional.mwips()},
                       {"timed_mwips", timed.mwips()},
                       {"functional_ratio_to_cpp", functional.seconds / plain},
                       {"timed_ratio_to_cpp", timed.seconds / plain}});
  }
  return {{"profile", profile.name}, {"kernels", kernels}};
}

void print_table(const Json& result) {
  fmt::print("{:<14}{:>14}{:>12}{:>12}{:>10}{:>14}{:>12}\n", "kernel", "warp instr.", "functional",
             "timed", "", "functional", "timed");
  fmt::print("{:<14}{:>14}{:>12}{:>12}{:>10}{:>14}{:>12}\n", "", "", "(M/s)", "(M/s)", "",
             "(x C++ loop)", "(x C++ loop)");
  for (const Json& kernel : result["kernels"]) {
    fmt::print("{:<14}{:>14}{:>12.1f}{:>12.1f}{:>10}{:>14.1f}{:>12.1f}\n",
               kernel["name"].get<std::string>(), kernel["warp_instructions"].get<uint64_t>(),
               kernel["functional_mwips"].get<double>(), kernel["timed_mwips"].get<double>(), "",
               kernel["functional_ratio_to_cpp"].get<double>(),
               kernel["timed_ratio_to_cpp"].get<double>());
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Measures how fast this machine simulates GPUs."};
  bool json = false;
  std::string profile = "h100x8";
  std::string only;
  int repetitions = 5;
  app.add_flag("--json", json, "print JSON");
  app.add_option("--profile", profile, "hardware profile")->capture_default_str();
  app.add_option("--kernel", only, "measure this kernel only");
  app.add_option("--repetitions", repetitions, "best of that many")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  Json result = measure(value_or_throw(load_profile(profile)), only, repetitions);
  if (json) {
    fmt::print("{}", dump_json_pretty(result));
  } else {
    print_table(result);
  }
  return 0;
}

}  // namespace
}  // namespace cb::sim

int main(int argc, char** argv) {
  try {
    return cb::sim::run(argc, argv);
  } catch (const cb::Error& error) {
    fmt::print(stderr, "commbench sim bench: {}\n", error.message());
    return 3;
  }
}
