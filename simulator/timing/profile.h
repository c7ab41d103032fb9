#pragma once

// A hardware description that the simulator times against: simulator/profiles/<name>.yaml. A file
// may build on one that ships (`base: h100x8`) and then says only its name, description and nodes.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "simulator/protocol/protocol.h"

namespace cb::sim {

/// Times in nanoseconds, rates in GB/s (1e9 bytes per second), both as measured on the machine
/// that the file names; each key of the file carries its source as a comment.
struct Profile {
  std::string name;  ///< "h100x8"
  std::string description;
  std::string target;  ///< nvcc's virtual architecture, "compute_90a"
  std::string hash;    ///< SHA-256 of the file, and of the one that it builds on
  int num_nodes = 1;
  int devices_per_node = 8;
  DeviceInfo device;  ///< of device 0; the daemon sets pci_bus_id, uuid and peer_mask

  // SM pipelines, in cycles of the SM clock (device.clock_khz).
  double sm_clock_ghz = 0;
  uint32_t alu_cycles = 0;  ///< dependent-issue latency of integer and fp32 operations
  uint32_t multiply_cycles = 0;
  uint32_t half_rate_cycles = 0;
  uint32_t double_cycles = 0;
  uint32_t special_cycles = 0;  ///< special function unit
  uint32_t convert_cycles = 0;
  uint32_t branch_cycles = 0;
  uint32_t shared_cycles = 0;           ///< load-use latency of shared memory
  uint32_t cluster_cycles = 0;          ///< latency of another SM's shared memory
  uint32_t bulk_extra_cycles = 0;       ///< of a bulk copy, beyond that of a load or store
  uint32_t barrier_cycles = 0;          ///< from the last arrival to the first instruction after it
  uint32_t cluster_barrier_cycles = 0;  ///< the same, of the barrier of a cluster
  double cluster_gbps_per_sm = 0;       ///< of one SM with the others of its cluster

  // Tensor cores. Types of other widths than 16 bits have the same rate in bytes.
  uint32_t tensor_macs_per_cycle = 0;  ///< dense .f16 multiply-adds of an SM
  uint32_t tensor_f64_macs_per_cycle = 0;
  double tensor_warp_efficiency = 0;  ///< of mma and wmma; wgmma has the whole rate
  uint32_t tensor_cycles = 0;         ///< from a matrix instruction to the use of its result

  // Memory of a device.
  double l1_hit_ns = 0, l2_hit_ns = 0, hbm_ns = 0;  ///< load-use latencies
  double l1_gbps_per_sm = 0, l2_gbps = 0, hbm_gbps = 0;
  double sm_port_gbps = 0;  ///< all that one SM exchanges with L2, HBM and links, per direction
  uint64_t l1_bytes = 0, l2_bytes = 0;  ///< modelled capacities
  double atomic_ns = 0;                 ///< round trip of a global atomic on the own device

  // Links.
  double nvlink_gbps = 0;                 ///< line rate per direction and device
  double nvlink_sm_efficiency = 0;        ///< of loads and stores by SMs
  double nvlink_copy_efficiency = 0;      ///< of copy engines
  double nvlink_multimem_efficiency = 0;  ///< 0 where there is no multicast
  double nvlink_hop_ns = 0;               ///< store issued to visible at the peer
  double nvlink_load_ns = 0;              ///< load-use latency from a peer's memory
  double multimem_extra_ns = 0;
  double sm_remote_gbps = 0;          ///< cap of one SM's stores to peers
  double pcie_gbps = 0, pcie_ns = 0;  ///< host memory: rate, and round trip of a load

  // Ordering.
  double fence_block_ns = 0, fence_gpu_ns = 0, fence_sys_ns = 0;

  // Host side, per call of one thread.
  double launch_enqueue_ns = 0;  ///< host time of a launch
  double launch_ns = 0;          ///< enqueue to first instruction on an idle stream
  double launch_gap_ns = 0;      ///< end of a kernel to the start of the next one in its stream
  /// From the moment in which a kernel lets another one overlap to the start of that one.
  double programmatic_launch_ns = 0;
  double cooperative_extra_ns = 0;
  double copy_enqueue_ns = 0, copy_start_ns = 0;  ///< host time; engine start-up
  double event_ns = 0, stream_op_ns = 0, sync_ns = 0, query_ns = 0;
  double malloc_ns = 0, free_ns = 0, host_alloc_ns = 0, module_load_ns = 0, ipc_open_ns = 0;
  double call_ns = 0;       ///< any other API call
  double bootstrap_ns = 0;  ///< an all-gather or barrier of the bootstrap
  double relax_ns = 0;      ///< cb_relax
  uint32_t copy_engines = 0;

  int num_devices() const { return num_nodes * devices_per_node; }
  int node_of_device(int device) const { return device / devices_per_node; }
};

/// Loads simulator/profiles/<name>.yaml, or a file when `name` has a slash. Error(kConfig) with
/// file and line; an unknown name lists the known ones.
Result<Profile> load_profile(const std::string& name);
/// Names of the profiles that ship.
std::vector<std::string> profile_names();

}  // namespace cb::sim
