#include "simulator/daemon/launches.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "simulator/daemon/call.h"
#include "simulator/daemon/modules.h"
#include "simulator/daemon/streams.h"
#include "simulator/protocol/occupancy.h"

namespace cb::sim {
namespace {

constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
constexpr uint64_t kMaxThreads = 1024;
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535};

uint64_t product(const uint32_t (&dims)[3]) { return uint64_t{dims[0]} * dims[1] * dims[2]; }

/// The shims have asked for what CUDA refuses; what hardware cannot do is refused here.
int check_cluster(const DeviceInfo& device, const KernelInfo& kernel, const BlockShape& shape,
                  const Launch& launch) {
  for (int axis = 0; axis < 3; ++axis) {
    uint32_t blocks = launch.cluster[axis];
    if (blocks == 0 || blocks > kLargestClusterBlocks || launch.grid[axis] % blocks != 0) {
      return kCudaInvalidClusterSize;
    }
    uint32_t required = kernel.required_cluster[axis];
    if (required != 0 && required != blocks) return kCudaInvalidClusterSize;
  }
  uint64_t blocks = product(launch.cluster);
  if (blocks == 1) return kCudaSuccess;
  if (!device.has_clusters()) return kCudaNotSupported;
  if (blocks > kLargestClusterBlocks) return kCudaInvalidClusterSize;
  uint64_t resident = clusters_per_device(device, shape, static_cast<uint32_t>(blocks));
  if (resident == 0) return kCudaInvalidClusterSize;
  bool together = launch.cooperative != 0;
  return together && product(launch.grid) > resident * blocks ? kCudaCooperativeLaunchTooLarge
                                                              : kCudaSuccess;
}

int check_shape(const DeviceInfo& device, const KernelInfo& kernel, const Launch& launch) {
  for (int axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.grid[axis] > kMaxGrid[axis] || launch.block[axis] == 0 ||
        launch.block[axis] > kMaxBlock[axis]) {
      return kCudaInvalidConfiguration;
    }
  }
  uint64_t threads = product(launch.block);
  if (threads > kMaxThreads) return kCudaInvalidConfiguration;
  if (kernel.max_threads != 0 && threads > kernel.max_threads) return kCudaLaunchOutOfResources;
  BlockShape shape;
  shape.threads = static_cast<uint32_t>(threads);
  shape.registers_per_thread = kernel.registers;
  shape.shared_bytes = uint64_t{kernel.static_shared_bytes} + launch.dynamic_shared_bytes;
  if (shape.shared_bytes > device.shared_per_block_optin_bytes) return kCudaInvalidValue;
  uint64_t resident = blocks_per_sm(device, shape);
  if (resident == 0) return kCudaLaunchOutOfResources;
  if (int error = check_cluster(device, kernel, shape, launch); error != kCudaSuccess) return error;
  if (launch.cooperative != 0 && product(launch.grid) > resident * device.num_sms) {
    return kCudaCooperativeLaunchTooLarge;
  }
  return kCudaSuccess;
}

/// The kernel decoded; nullptr: the call has failed, and a finding says why.
std::shared_ptr<const Program> find_program(Call& call, SharedModule& module,
                                            const Launch& launch) {
  std::string name = demangle(module.kernel_names[launch.kernel]);
  auto refuse = [&](const std::string& reason) {
    call.cluster.report({.kind = Finding::Kind::kUnsupported,
                         .time_ps = call.thread.clock,
                         .place = {.kernel = name, .rank = call.process.rank},
                         .detail = reason});
    call.fail(kCudaNotSupported);
  };
  auto program = module.program(launch.kernel, call.cluster.modules.stalls());
  if (program) return *program;
  refuse(program.error().message());
  return nullptr;
}

/// What a kernel that died died of.
int error_of_rank(const Cluster& cluster, int rank) {
  const auto& findings = cluster.engine.findings();
  auto last = std::find_if(findings.rbegin(), findings.rend(),
                           [rank](const Finding& finding) { return finding.place.rank == rank; });
  return last == findings.rend() ? kCudaIllegalAddress : cuda_error_of(last->kind);
}

std::shared_ptr<Work> make_kernel(Call& call, const std::shared_ptr<Stream>& stream,
                                  KernelLaunch kernel) {
  Cluster& cluster = call.cluster;
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kKernel;
  work->device = stream->device;
  work->stream = stream;
  work->what = "kernel " + kernel.name;
  if (cluster.timeline != nullptr) {
    work->details = dump_json({{"grid", {kernel.grid[0], kernel.grid[1], kernel.grid[2]}},
                               {"block", {kernel.block[0], kernel.block[1], kernel.block[2]}},
                               {"dynamic_shared_bytes", kernel.dynamic_shared_bytes}});
  }
  work->ready = call.thread.clock + call.host_cost(cluster.costs.launch_enqueue) +
                cluster.costs.launch + (kernel.cooperative ? cluster.costs.cooperative_extra : 0);
  work->gap = cluster.costs.launch_gap;
  auto held = std::make_shared<KernelLaunch>(std::move(kernel));
  work->begin = [&cluster, held](const std::shared_ptr<Work>& self, Time start) {
    held->start = start;
    held->has_dependencies = self->primary != nullptr && !self->primary->done;
    held->on_launch_dependents = [&cluster, self](Time) { let_dependents_start(cluster, self); };
    self->run = cluster.engine.start(std::move(*held), [&cluster, self](Time, bool failed) {
      if (self->done) return;
      if (!failed) return kernel_ended(cluster, self);
      HostProcess& process = *self->owner;
      cluster.kernel_failed(process);
      cluster.break_context(process, self->device, error_of_rank(cluster, process.rank));
    });
  };
  return work;
}

}  // namespace

void launch(Call& call) {
  std::optional<Launch> message = call.read_payload<Launch>();
  if (!message || call.payload.size() - sizeof(Launch) != message->param_bytes) {
    return call.malformed("a launch of another size");
  }
  std::optional<int> device = call.device(message->device);
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(message->stream, *device);
  if (stream == nullptr) return;
  HostProcess& process = call.process;
  auto found = process.modules.find(message->module);
  if (found == process.modules.end()) return call.fail(kCudaInvalidResourceHandle);
  LoadedModule& module = *found->second;
  if (message->kernel >= module.shared->kernels.size()) return call.malformed("no such kernel");
  const KernelInfo& info = module.shared->kernels[message->kernel];
  if (info.param_bytes != message->param_bytes) {
    return call.malformed("a launch with another number of parameter bytes");
  }
  int error = check_shape(call.cluster.profile.device, info, *message);
  if (error != kCudaSuccess) return call.fail(error);
  if (process.unfinished.size() >= kProcessQuota.unfinished_work) {
    return call.again(
        [&process] { return process.unfinished.size() < kProcessQuota.unfinished_work; },
        "waits for room in its queue of work");
  }
  std::shared_ptr<const Program> program = find_program(call, *module.shared, *message);
  if (program == nullptr) return;
  auto variables = instance(call.cluster, process, module, *device);
  if (variables == nullptr) return call.fail(kCudaMemoryAllocation);

  KernelLaunch kernel;
  kernel.program = program;
  kernel.variables = variables;
  kernel.rank = process.rank;
  kernel.device = *device;
  std::copy(std::begin(message->grid), std::end(message->grid), std::begin(kernel.grid));
  std::copy(std::begin(message->block), std::end(message->block), std::begin(kernel.block));
  std::copy(std::begin(message->cluster), std::end(message->cluster), std::begin(kernel.cluster));
  kernel.explicit_cluster = message->explicit_cluster != 0;
  kernel.dynamic_shared_bytes = message->dynamic_shared_bytes;
  kernel.registers = info.registers;
  kernel.static_shared_bytes = std::max(info.static_shared_bytes, program->static_shared_bytes);
  kernel.cooperative = message->cooperative != 0;
  kernel.priority = std::clamp(message->priority, -1000, 1000);
  auto parameters = call.payload.subspan(sizeof(Launch));
  kernel.parameters.assign(parameters.begin(), parameters.end());
  kernel.name = demangle(module.shared->kernel_names[message->kernel]);
  std::shared_ptr<Work> work = make_kernel(call, stream, std::move(kernel));
  // Programmatic dependent launch came with clusters: compute capability 9.0.
  work->may_overlap =
      message->programmatic_serialization != 0 && call.cluster.profile.device.has_clusters();
  enqueue(call.cluster, process, work);
  call.done(call.host_cost(call.cluster.costs.launch_enqueue));
}

}  // namespace cb::sim
