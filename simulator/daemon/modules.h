#pragma once

// Modules as one process has them: an id, and on each device where they are used an instance with
// variables of its own.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulator/daemon/module_cache.h"

namespace cb::sim {

class Call;
struct Cluster;
struct HostProcess;

struct LoadedModule {
  std::shared_ptr<SharedModule> shared;
  uint64_t image_bytes = 0;
  /// By global device: the address of each of Module::variables, 0 for those without one.
  std::map<int, std::shared_ptr<const std::vector<uint64_t>>> instances;
};

/// The module's variables on the device, made when first asked for. nullptr: no memory.
std::shared_ptr<const std::vector<uint64_t>> instance(Cluster& cluster, HostProcess& process,
                                                      LoadedModule& module, int device);
/// The device was reset.
void forget_instances(HostProcess& process, int device);

void module_load(Call& call);
void module_unload(Call& call);
void symbol_address(Call& call);

}  // namespace cb::sim
