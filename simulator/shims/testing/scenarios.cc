// What the tests of the shims run: `shim_scenarios NAME` loads the simulator's libcudart and
// libcuda as a CUDA program does, makes some calls and prints what they return.

#include "simulator/shims/testing/scenarios.h"

#include <cstdio>
#include <cstring>

namespace {

struct Scenario {
  const char* name;
  int (*run)();
};

constexpr Scenario kScenarios[] = {
    {"memory", scenario_memory},
    {"one_way", scenario_one_way},
    {"copies", scenario_copies},
    {"copy_rows", scenario_copy_rows},
    {"launch", scenario_launch},
    {"bad_module", scenario_bad_module},
    {"linked_code", scenario_linked_code},
    {"handles", scenario_handles},
    {"sticky", scenario_sticky},
    {"many_calls", scenario_many_calls},
    {"blocked_threads", scenario_blocked_threads},
    {"threads", scenario_threads},
    {"main_leaves", scenario_main_leaves},
    {"time", scenario_time},
    {"timed_waits", scenario_timed_waits},
    {"fork", scenario_fork},
    {"pinned", scenario_pinned},
    {"dereference", scenario_dereference},
    {"output", scenario_output},
    {"bootstrap", scenario_bootstrap},
    {"driver", scenario_driver},
    {"refused", scenario_refused},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Scenario& scenario : kScenarios) {
    if (argc == 2 && strcmp(argv[1], scenario.name) == 0) return scenario.run();
  }
  fprintf(stderr, "usage: shim_scenarios NAME\n");
  return 2;
}
