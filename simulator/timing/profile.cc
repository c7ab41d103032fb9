#include "simulator/timing/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/file.h"
#include "base/hash.h"
#include "base/yaml.h"
#include "simulator/timing/embedded_profiles.h"

namespace cb::sim {
namespace {

/// Times and rates beyond this are mistakes, and would overflow picoseconds before long.
constexpr double kMost = 1e9;
constexpr int64_t kMaxSms = 1024;

template <typename T>
T whole(const Yaml& section, std::string_view key, int64_t min = 1) {
  constexpr int64_t kMostWhole = sizeof(T) == 4 ? UINT32_MAX : int64_t{1} << 50;
  return static_cast<T>(section.at(key).integer(min, kMostWhole));
}

double positive(const Yaml& section, std::string_view key) {
  Yaml node = section.at(key);
  double value = node.number();
  if (!(value > 0 && value <= kMost)) {
    throw node.error(fmt::format("{} must be above 0 and at most {}, not {}", key, kMost, value));
  }
  return value;
}

double not_negative(const Yaml& section, std::string_view key) {
  Yaml node = section.at(key);
  double value = node.number();
  if (!(value >= 0 && value <= kMost)) {
    throw node.error(fmt::format("{} must be from 0 to {}, not {}", key, kMost, value));
  }
  return value;
}

/// GPCs matter for clusters only.
void read_gpcs(const Yaml& section, DeviceInfo& device) {
  if (!device.has_clusters()) return;
  Yaml node = section.at("gpcs");
  std::vector<int64_t> sms = node.integers(1, kMaxSms);
  if (sms.size() > DeviceInfo::kMaxGpcs) {
    throw node.error(fmt::format("at most {} GPCs, not {}", DeviceInfo::kMaxGpcs, sms.size()));
  }
  int64_t sum = std::accumulate(sms.begin(), sms.end(), int64_t{0});
  if (sum != device.num_sms) {
    throw node.error(fmt::format("the GPCs have {} SMs, the device {}", sum, device.num_sms));
  }
  device.num_gpcs = static_cast<uint32_t>(sms.size());
  std::copy(sms.begin(), sms.end(), device.gpc_sms);
}

double share(const Yaml& section, std::string_view key) {
  Yaml node = section.at(key);
  double value = node.number();
  if (!(value > 0 && value <= 1)) {
    throw node.error(fmt::format("{} must be above 0 and at most 1, not {}", key, value));
  }
  return value;
}

void read_device(const Yaml& section, DeviceInfo& device) {
  Yaml name = section.at("name");
  std::string text = name.text();
  if (text.size() >= sizeof device.name) throw name.error("the name is longer than 63 bytes");
  std::memcpy(device.name, text.c_str(), text.size() + 1);
  device.global_memory_bytes = whole<uint64_t>(section, "global_memory_bytes");
  device.shared_per_block_bytes = whole<uint64_t>(section, "shared_per_block_bytes");
  device.shared_per_block_optin_bytes = whole<uint64_t>(section, "shared_per_block_optin_bytes");
  device.shared_per_sm_bytes = whole<uint64_t>(section, "shared_per_sm_bytes");
  device.reserved_shared_per_block_bytes =
      whole<uint64_t>(section, "reserved_shared_per_block_bytes", 0);
  device.l2_bytes = whole<uint64_t>(section, "l2_bytes");
  device.compute_major = whole<uint32_t>(section, "compute_major");
  device.compute_minor = whole<uint32_t>(section, "compute_minor", 0);
  device.num_sms = static_cast<uint32_t>(section.at("sms").integer(1, kMaxSms));
  read_gpcs(section, device);
  device.clock_khz = whole<uint32_t>(section, "clock_khz");
  device.memory_clock_khz = whole<uint32_t>(section, "memory_clock_khz");
  device.memory_bus_bits = whole<uint32_t>(section, "memory_bus_bits");
  device.registers_per_sm = whole<uint32_t>(section, "registers_per_sm");
  device.max_threads_per_sm = whole<uint32_t>(section, "max_threads_per_sm");
  device.max_blocks_per_sm = whole<uint32_t>(section, "max_blocks_per_sm");
  device.copy_engines = whole<uint32_t>(section, "copy_engines");
  device.multicast_supported = section.at("multicast").boolean() ? 1 : 0;
}

void read_sm(const Yaml& section, Profile& profile) {
  profile.sm_clock_ghz = positive(section, "clock_ghz");
  profile.alu_cycles = whole<uint32_t>(section, "alu_cycles");
  profile.multiply_cycles = whole<uint32_t>(section, "multiply_cycles");
  profile.half_rate_cycles = whole<uint32_t>(section, "half_rate_cycles");
  profile.double_cycles = whole<uint32_t>(section, "double_cycles");
  profile.special_cycles = whole<uint32_t>(section, "special_cycles");
  profile.convert_cycles = whole<uint32_t>(section, "convert_cycles");
  profile.branch_cycles = whole<uint32_t>(section, "branch_cycles");
  profile.shared_cycles = whole<uint32_t>(section, "shared_cycles");
  profile.cluster_cycles = whole<uint32_t>(section, "cluster_cycles");
  profile.bulk_extra_cycles = whole<uint32_t>(section, "bulk_extra_cycles");
  profile.barrier_cycles = whole<uint32_t>(section, "barrier_cycles");
  profile.tensor_macs_per_cycle = whole<uint32_t>(section, "tensor_macs_per_cycle");
  profile.tensor_f64_macs_per_cycle = whole<uint32_t>(section, "tensor_f64_macs_per_cycle");
  profile.tensor_warp_efficiency = share(section, "tensor_warp_efficiency");
  profile.tensor_cycles = whole<uint32_t>(section, "tensor_cycles");
  if (!profile.device.has_clusters()) return;
  profile.cluster_barrier_cycles = whole<uint32_t>(section, "cluster_barrier_cycles");
  profile.cluster_gbps_per_sm = positive(section, "cluster_gbps_per_sm");
}

void read_memory(const Yaml& section, Profile& profile) {
  profile.l1_hit_ns = positive(section, "l1_hit_ns");
  profile.l2_hit_ns = positive(section, "l2_hit_ns");
  profile.hbm_ns = positive(section, "hbm_ns");
  profile.l1_gbps_per_sm = positive(section, "l1_gbps_per_sm");
  profile.sm_port_gbps = positive(section, "sm_port_gbps");
  profile.l2_gbps = positive(section, "l2_gbps");
  profile.hbm_gbps = positive(section, "hbm_gbps");
  profile.l1_bytes = whole<uint64_t>(section, "l1_bytes");
  profile.l2_bytes = whole<uint64_t>(section, "l2_bytes");
  profile.atomic_ns = positive(section, "atomic_ns");
}

void read_links(const Yaml& file, Profile& profile) {
  Yaml nvlink = file.at("nvlink");
  profile.nvlink_gbps = positive(nvlink, "gbps");
  profile.nvlink_sm_efficiency = share(nvlink, "sm_efficiency");
  profile.nvlink_copy_efficiency = share(nvlink, "copy_efficiency");
  profile.nvlink_hop_ns = positive(nvlink, "hop_ns");
  profile.nvlink_load_ns = positive(nvlink, "load_ns");
  if (profile.device.multicast_supported != 0) {
    profile.nvlink_multimem_efficiency = share(nvlink, "multimem_efficiency");
    profile.multimem_extra_ns = not_negative(nvlink, "multimem_extra_ns");
  }
  profile.sm_remote_gbps = positive(nvlink, "sm_remote_gbps");
  Yaml host_link = file.at("host_link");
  profile.pcie_gbps = positive(host_link, "gbps");
  profile.pcie_ns = positive(host_link, "round_trip_ns");
  Yaml ordering = file.at("ordering");
  profile.fence_block_ns = not_negative(ordering, "fence_block_ns");
  profile.fence_gpu_ns = not_negative(ordering, "fence_gpu_ns");
  profile.fence_sys_ns = not_negative(ordering, "fence_sys_ns");
}

void read_host(const Yaml& host, Profile& profile) {
  const std::pair<const char*, double*> costs[] = {
      {"launch_enqueue_ns", &profile.launch_enqueue_ns},
      {"launch_ns", &profile.launch_ns},
      {"launch_gap_ns", &profile.launch_gap_ns},
      {"programmatic_launch_ns", &profile.programmatic_launch_ns},
      {"cooperative_extra_ns", &profile.cooperative_extra_ns},
      {"copy_enqueue_ns", &profile.copy_enqueue_ns},
      {"copy_start_ns", &profile.copy_start_ns},
      {"event_ns", &profile.event_ns},
      {"stream_op_ns", &profile.stream_op_ns},
      {"sync_ns", &profile.sync_ns},
      {"query_ns", &profile.query_ns},
      {"malloc_ns", &profile.malloc_ns},
      {"free_ns", &profile.free_ns},
      {"host_alloc_ns", &profile.host_alloc_ns},
      {"module_load_ns", &profile.module_load_ns},
      {"ipc_open_ns", &profile.ipc_open_ns},
      {"call_ns", &profile.call_ns},
      {"bootstrap_ns", &profile.bootstrap_ns},
      {"relax_ns", &profile.relax_ns}};
  for (const auto& [key, cost] : costs) *cost = positive(host, key);
}

constexpr int64_t kMaxNodes = 8;
/// Arenas bound the ranks, and a rank has a device of its own.
constexpr int kMaxDevices = 24;

std::string_view embedded_text(const Yaml& name) {
  std::vector<std::string> known = profile_names();
  const std::string& wanted = known[name.one_of(known)];
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    if (profile.name == wanted) return profile.text;
  }
  throw name.error("no such profile");
}

Profile read_whole_profile(const Yaml& file) {
  Profile profile;
  profile.target = file.at("target").text();
  profile.devices_per_node = static_cast<int>(file.at("devices_per_node").integer(1, 16));
  read_device(file.at("device"), profile.device);
  read_sm(file.at("sm"), profile);
  read_memory(file.at("memory"), profile);
  read_links(file, profile);
  read_host(file.at("host"), profile);
  profile.copy_engines = profile.device.copy_engines;
  return profile;
}

Profile read_profile(const std::string& text, const std::string& where) {
  Yaml file = Yaml::load_text(text, where);
  Profile profile;
  std::string hashed = text;
  if (std::optional<Yaml> base = file.find("base")) {
    std::string base_text(embedded_text(*base));
    Yaml base_file = Yaml::load_text(base_text, "base of " + where);
    if (base_file.has("base")) throw base->error("it builds on another file itself");
    profile = read_whole_profile(base_file);
    hashed += base_text;
  } else {
    profile = read_whole_profile(file);
  }
  profile.hash = sha256_hex(hashed);
  profile.name = file.at("name").text();
  profile.description = file.at("description").text();
  Yaml nodes = file.at("nodes");
  profile.num_nodes = static_cast<int>(nodes.integer(1, kMaxNodes));
  if (profile.num_devices() > kMaxDevices) {
    throw nodes.error(
        fmt::format("{} devices are more than {}", profile.num_devices(), kMaxDevices));
  }
  file.finish();
  return profile;
}

}  // namespace

Result<Profile> load_profile(const std::string& name) {
  try {
    if (name.find('/') != std::string::npos)
      return read_profile(value_or_throw(read_file(name)), name);
    for (const EmbeddedProfile& profile : embedded_profiles()) {
      if (profile.name == name) {
        return read_profile(std::string(profile.text),
                            fmt::format("simulator/profiles/{}.yaml", name));
      }
    }
    return failure(ErrorCode::kUsage,
                   fmt::format("no profile \"{}\" (known: {}; a file needs a slash in its name)",
                               name, fmt::join(profile_names(), ", ")));
  } catch (const Error& error) {
    return tl::unexpected<Error>(error);
  }
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const EmbeddedProfile& profile : embedded_profiles()) names.emplace_back(profile.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cb::sim
