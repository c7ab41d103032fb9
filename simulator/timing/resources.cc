// Where accesses and copies spend their time. A latency of the profile is what one access takes on
// an idle machine; on top of it comes the waiting for each server on its way, the servers being
// passed at the same time. Loads of a line that another warp has just asked for count as hits.

#include "simulator/timing/resources.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "simulator/protocol/occupancy.h"
#include "simulator/protocol/protocol.h"
#include "simulator/timing/rate_server.h"
#include "simulator/timing/sector_lookup.h"

namespace cb::sim {
namespace {

constexpr uint64_t kSharedPassBytes = 128;

// Windows of links and memory: 33 ns, and 268 us ahead; of an SM: 16 ns, and 8 us ahead.
constexpr unsigned kLinkWindowBits = 15;
constexpr unsigned kLinkWindows = 8192;
constexpr unsigned kSmWindowBits = 14;
constexpr unsigned kSmWindows = 512;

using Kind = MemoryAccess::Kind;

Time to_ps(double ns) { return static_cast<Time>(ns * 1000 + 0.5); }

RateServer link(double gbps) { return {gbps, kLinkWindowBits, kLinkWindows}; }
RateServer of_sm(double gbps) { return {gbps, kSmWindowBits, kSmWindows}; }

/// The same work, when all of it takes longer by a fixed factor.
struct Scale {
  uint64_t q16 = 1 << 16;

  explicit Scale(double factor) : q16(static_cast<uint64_t>(factor * 65536 + 0.5)) {}
  uint64_t of(uint64_t bytes) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(bytes) * q16) >> 16);
  }
};

struct Sm {
  RateServer load_store;
  RateServer bulk;               ///< the copy engine
  RateServer port_in, port_out;  ///< between the SM and everything beyond L1
  RateServer remote_out;         ///< stores to peers
  RateServer cluster;            ///< shared memory of other blocks
  RateServer schedulers[kSchedulersPerSm];
  RateServer tensor_cores[kSchedulersPerSm];
  LineCache l1;
  bool ready = false;
};

struct Device {
  RateServer l2, hbm, egress, ingress, to_host, from_host;
  LineCache l2_lines;
  std::vector<Sm> sms;
  std::vector<Time> engines_free_at;
};

uint64_t bytes_of(const MemoryAccess& access) {
  return std::max<uint64_t>(access.sectors, 1) * kSectorBytes;
}

}  // namespace

struct Resources::State {
  Profile profile;
  std::vector<Device> devices;
  std::vector<uint64_t> link_bytes;
  Time l1_hit, l2_hit, hbm, atomic, hop, remote_load, pcie, multimem_extra, shared_latency,
      bulk_extra, cluster;
  Time tensor_latency;
  double tensor_bits_per_ns;         ///< multiply-adds times bits, of one tensor core
  Scale copy_scale, multimem_scale;  ///< of the links' servers, which have the rate of SM accesses

  explicit State(const Profile& p);
  Sm& sm_of(int device, uint32_t sm) {
    Sm& state = devices[static_cast<size_t>(device)].sms[sm];
    if (!state.ready) [[unlikely]]
      make_sm(state);
    return state;
  }
  void make_sm(Sm& sm);
  void count_link(int from, int to, uint64_t bytes) {
    link_bytes[static_cast<size_t>(from) * devices.size() + static_cast<size_t>(to)] += bytes;
  }
  bool same_node(int a, int b) const {
    return profile.node_of_device(a) == profile.node_of_device(b);
  }
  Time issue_store(Time issued, Time passed, Time on_its_way) const;
  /// Memory of this or another device, or of the host, by one of the SM's units.
  Charge reach(int device, Sm& sm, Time t, const MemoryAccess& access, RateServer& unit);
  Charge local_load(Device& device, Sm& sm, Time t, const MemoryAccess& access, RateServer& unit);
  Charge local_store(Device& device, Sm& sm, Time t, const MemoryAccess& access, RateServer& unit);
  Charge remote_load_from(int from, int to, Sm& sm, Time t, const MemoryAccess& access,
                          RateServer& unit);
  Charge remote_store_to(int from, int to, Sm& sm, Time t, const MemoryAccess& access,
                         RateServer& unit);
  Charge pinned(Device& device, Time t, const MemoryAccess& access, RateServer& unit);
};

Resources::State::State(const Profile& p)
    : profile(p),
      devices(static_cast<size_t>(p.num_devices())),
      link_bytes(devices.size() * devices.size()),
      l1_hit(to_ps(p.l1_hit_ns)),
      l2_hit(to_ps(p.l2_hit_ns)),
      hbm(to_ps(p.hbm_ns)),
      atomic(to_ps(p.atomic_ns)),
      hop(to_ps(p.nvlink_hop_ns)),
      remote_load(to_ps(p.nvlink_load_ns)),
      pcie(to_ps(p.pcie_ns)),
      multimem_extra(to_ps(p.multimem_extra_ns)),
      shared_latency(to_ps(p.shared_cycles / p.sm_clock_ghz)),
      bulk_extra(to_ps(p.bulk_extra_cycles / p.sm_clock_ghz)),
      cluster(to_ps(p.cluster_cycles / p.sm_clock_ghz)),
      tensor_latency(to_ps(p.tensor_cycles / p.sm_clock_ghz)),
      tensor_bits_per_ns(16.0 * p.tensor_macs_per_cycle / kSchedulersPerSm * p.sm_clock_ghz),
      copy_scale(p.nvlink_sm_efficiency / p.nvlink_copy_efficiency),
      multimem_scale(p.nvlink_multimem_efficiency > 0
                         ? p.nvlink_sm_efficiency / p.nvlink_multimem_efficiency
                         : 1) {
  double nvlink = p.nvlink_gbps * p.nvlink_sm_efficiency;
  for (Device& device : devices) {
    device.l2 = link(p.l2_gbps);
    device.hbm = link(p.hbm_gbps);
    device.egress = link(nvlink);
    device.ingress = link(nvlink);
    device.to_host = link(p.pcie_gbps);
    device.from_host = link(p.pcie_gbps);
    device.l2_lines = LineCache(p.l2_bytes);
    device.sms.resize(p.device.num_sms);
    device.engines_free_at.resize(p.copy_engines);
  }
}

void Resources::State::make_sm(Sm& sm) {
  sm.load_store = of_sm(profile.l1_gbps_per_sm);
  sm.bulk = of_sm(profile.l1_gbps_per_sm);
  sm.port_in = of_sm(profile.sm_port_gbps);
  sm.port_out = of_sm(profile.sm_port_gbps);
  sm.remote_out = of_sm(profile.sm_remote_gbps);
  if (profile.device.has_clusters()) sm.cluster = of_sm(profile.cluster_gbps_per_sm);
  for (RateServer& scheduler : sm.schedulers) scheduler = of_sm(profile.sm_clock_ghz);
  for (RateServer& core : sm.tensor_cores) core = of_sm(tensor_bits_per_ns);
  sm.l1 = LineCache(profile.l1_bytes);
  sm.ready = true;
}

/// Stores need no answer, but an SM holds no more of them than are on their way when it sends as
/// fast as it can: then the next one cannot be issued.
Time Resources::State::issue_store(Time issued, Time passed, Time on_its_way) const {
  return passed > issued + on_its_way ? passed - on_its_way : issued;
}

Resources::Charge Resources::State::local_load(Device& device, Sm& sm, Time t,
                                               const MemoryAccess& access, RateServer& unit) {
  Charge charge;
  charge.issued = unit.pass(t, bytes_of(access));
  Missing missing = fetch_sectors(access, access.strong ? nullptr : &sm.l1, device.l2_lines);
  charge.done = charge.issued + l1_hit;
  if (missing.in_l1 != 0) {
    uint64_t bytes = missing.in_l1 * kSectorBytes;
    Time passed =
        std::max(sm.port_in.pass(charge.issued, bytes), device.l2.pass(charge.issued, bytes));
    charge.done = passed + l2_hit;
  }
  if (missing.in_l2 != 0) {
    Time passed = device.hbm.pass(charge.issued, missing.in_l2 * kSectorBytes);
    charge.done = std::max(charge.done, passed + hbm);
  }
  charge.reached = charge.issued + (charge.done - charge.issued) / 2;
  return charge;
}

Resources::Charge Resources::State::local_store(Device& device, Sm& sm, Time t,
                                                const MemoryAccess& access, RateServer& unit) {
  uint64_t bytes = bytes_of(access);
  Charge charge;
  charge.issued = unit.pass(t, bytes);
  Time passed =
      std::max(sm.port_out.pass(charge.issued, bytes), device.l2.pass(charge.issued, bytes));
  // A new line pushes one out to HBM.
  uint64_t displaced = fetch_sectors(access, nullptr, device.l2_lines).in_l2;
  if (displaced != 0) {
    passed = std::max(passed, device.hbm.pass(charge.issued, displaced * kSectorBytes));
  }
  if (access.kind == Kind::kAtomic) {
    charge.done = passed + atomic;
    charge.reached = passed + atomic / 2;
    return charge;
  }
  charge.done = passed + (access.kind == Kind::kStore ? l2_hit : atomic) / 2;
  charge.reached = charge.done;
  charge.issued = issue_store(charge.issued, passed, hbm);
  return charge;
}

Resources::Charge Resources::State::remote_load_from(int from, int to, Sm& sm, Time t,
                                                     const MemoryAccess& access, RateServer& unit) {
  Device& self = devices[static_cast<size_t>(from)];
  Device& owner = devices[static_cast<size_t>(to)];
  Charge charge;
  charge.issued = unit.pass(t, bytes_of(access));
  // L1 keeps what peers own, too, until the next fence or acquire.
  Missing missing = fetch_sectors(access, access.strong ? nullptr : &sm.l1, owner.l2_lines);
  if (missing.in_l1 == 0) {
    charge.done = charge.issued + l1_hit;
    charge.reached = charge.issued + l1_hit / 2;
    return charge;
  }
  uint64_t bytes = missing.in_l1 * kSectorBytes;
  Time start = charge.issued;
  Time passed = std::max({owner.egress.pass(start, bytes), self.ingress.pass(start, bytes),
                          sm.port_in.pass(start, bytes), owner.l2.pass(start, bytes)});
  if (missing.in_l2 != 0) {
    passed = std::max(passed, owner.hbm.pass(start, missing.in_l2 * kSectorBytes));
  }
  count_link(to, from, bytes);
  charge.done = passed + remote_load;
  charge.reached = start + remote_load / 2;
  return charge;
}

Resources::Charge Resources::State::remote_store_to(int from, int to, Sm& sm, Time t,
                                                    const MemoryAccess& access, RateServer& unit) {
  Device& self = devices[static_cast<size_t>(from)];
  Device& owner = devices[static_cast<size_t>(to)];
  uint64_t bytes = bytes_of(access);
  Charge charge;
  charge.issued = unit.pass(t, bytes);
  Time start = charge.issued;
  Time passed = std::max({self.egress.pass(start, bytes), owner.ingress.pass(start, bytes),
                          sm.remote_out.pass(start, bytes), owner.l2.pass(start, bytes)});
  uint64_t displaced = fetch_sectors(access, nullptr, owner.l2_lines).in_l2;
  if (displaced != 0) passed = std::max(passed, owner.hbm.pass(start, displaced * kSectorBytes));
  count_link(from, to, bytes);
  if (access.kind == Kind::kAtomic) {
    passed = std::max({passed, owner.egress.pass(start, bytes), self.ingress.pass(start, bytes)});
    count_link(to, from, bytes);
    charge.done = passed + remote_load;
    charge.reached = passed + remote_load / 2;
    return charge;
  }
  charge.done = passed + hop;
  charge.reached = charge.done;
  charge.issued = issue_store(charge.issued, passed, hop);
  return charge;
}

Resources::Charge Resources::State::pinned(Device& device, Time t, const MemoryAccess& access,
                                           RateServer& unit) {
  uint64_t bytes = bytes_of(access);
  Charge charge;
  charge.issued = unit.pass(t, bytes);
  if (access.kind == Kind::kLoad || access.kind == Kind::kAtomic) {
    Time passed = device.from_host.pass(charge.issued, bytes);
    if (access.kind == Kind::kAtomic) {
      passed = std::max(passed, device.to_host.pass(charge.issued, bytes));
    }
    charge.done = passed + pcie;
    charge.reached = charge.issued + pcie / 2;
    return charge;
  }
  Time passed = device.to_host.pass(charge.issued, bytes);
  charge.done = passed + pcie / 2;
  charge.reached = charge.done;
  charge.issued = issue_store(charge.issued, passed, pcie);
  return charge;
}

Resources::Resources(const Profile& profile) : state_(std::make_unique<State>(profile)) {}
Resources::~Resources() = default;

Time Resources::issue(int device, uint32_t sm, uint32_t warp_slot, Time t, uint32_t slots) {
  Sm& state = state_->sm_of(device, sm);
  return state.schedulers[warp_slot % kSchedulersPerSm].pass(t, slots);
}

Resources::TensorTime Resources::tensor(int device, uint32_t sm, uint32_t warp_slot, Time t,
                                        const TensorWork& work) {
  State& state = *state_;
  const Profile& profile = state.profile;
  // Units of .f16, as the server has one rate.
  double bits = work.bits == 64
                    ? 16.0 * profile.tensor_macs_per_cycle / profile.tensor_f64_macs_per_cycle
                    : work.bits;
  if (!work.warpgroup) bits /= profile.tensor_warp_efficiency;
  double units = static_cast<double>(work.macs) * bits;
  Time duration = to_ps(units / state.tensor_bits_per_ns);
  RateServer& core = state.sm_of(device, sm).tensor_cores[warp_slot % kSchedulersPerSm];
  Time passed = core.pass(t, static_cast<uint64_t>(units));
  Time started = std::max(t, passed - std::min(passed, duration));
  return {started, std::max(passed, started + state.tensor_latency)};
}

Resources::Charge Resources::access(int device, uint32_t sm_index, Time t,
                                    const MemoryAccess& access) {
  State& state = *state_;
  Sm& sm = state.sm_of(device, sm_index);
  switch (access.target) {
    case MemoryAccess::Target::kShared: {
      uint64_t passes = std::max<uint32_t>(access.conflicts, 1);
      Time issued = sm.load_store.pass(t, passes * kSharedPassBytes);
      Time done = issued + state.shared_latency;
      if (access.sectors != 0) {
        bool is_one_way = access.kind == Kind::kStore || access.kind == Kind::kReduction;
        done = sm.cluster.pass(issued, bytes_of(access)) +
               (is_one_way ? state.cluster / 2 : state.cluster);
      }
      return {.issued = issued, .done = done, .reached = done};
    }
    case MemoryAccess::Target::kLocal:
    case MemoryAccess::Target::kParam: {
      Time issued = sm.load_store.pass(t, std::max<uint32_t>(access.bytes, 1));
      Time done = issued + state.l1_hit;
      return {.issued = issued, .done = done, .reached = done};
    }
    case MemoryAccess::Target::kMulticast:
      return multicast(device, sm_index, t, access, state.profile.devices_per_node);
    case MemoryAccess::Target::kPinned:
    case MemoryAccess::Target::kDevice:
      break;
  }
  return state.reach(device, sm, t, access, sm.load_store);
}

Resources::Charge Resources::State::reach(int device, Sm& sm, Time t, const MemoryAccess& access,
                                          RateServer& unit) {
  Device& self = devices[static_cast<size_t>(device)];
  if (access.target == MemoryAccess::Target::kPinned) return pinned(self, t, access, unit);
  bool is_load = access.kind == Kind::kLoad || access.kind == Kind::kNone;
  if (access.device == device || access.device == MemoryAccess::kNoDevice) {
    return is_load ? local_load(self, sm, t, access, unit) : local_store(self, sm, t, access, unit);
  }
  CB_CHECK(access.device < devices.size() && same_node(device, access.device),
           "memory is on the device's own node");
  return is_load ? remote_load_from(device, access.device, sm, t, access, unit)
                 : remote_store_to(device, access.device, sm, t, access, unit);
}

Resources::Charge Resources::bulk(int device, uint32_t sm_index, Time t,
                                  const MemoryAccess& access) {
  State& state = *state_;
  Sm& sm = state.sm_of(device, sm_index);
  MemoryAccess direct = access;
  direct.strong = true;
  Charge charge = state.reach(device, sm, t, direct, sm.bulk);
  charge.done += state.bulk_extra;
  charge.reached += state.bulk_extra;
  return charge;
}

Time Resources::within_cluster(int device, uint32_t from_sm, uint32_t to_sm, Time t,
                               uint64_t bytes) {
  State& state = *state_;
  Sm& from = state.sm_of(device, from_sm);
  Sm& to = state.sm_of(device, to_sm);
  if (!state.profile.device.has_clusters()) {
    return std::max(from.port_out.pass(t, bytes), to.port_in.pass(t, bytes)) + state.cluster;
  }
  Time passed = from.cluster.pass(t, bytes);
  if (&to != &from) passed = std::max(passed, to.cluster.pass(t, bytes));
  return passed + state.cluster;
}

Resources::Charge Resources::multicast(int device, uint32_t sm_index, Time t,
                                       const MemoryAccess& access, int num_members) {
  State& state = *state_;
  Sm& sm = state.sm_of(device, sm_index);
  Device& self = state.devices[static_cast<size_t>(device)];
  uint64_t bytes = bytes_of(access);
  uint64_t scaled = state.multimem_scale.of(bytes);
  bool is_load = access.kind == Kind::kLoad;
  Charge charge;
  charge.issued = sm.load_store.pass(t, bytes);
  Time start = charge.issued;
  Time passed = is_load ? std::max(self.ingress.pass(start, scaled), sm.port_in.pass(start, bytes))
                        : std::max(self.egress.pass(start, scaled), sm.port_out.pass(start, bytes));
  // Members are devices of one node, in order of their numbers.
  int first = state.profile.node_of_device(device) * state.profile.devices_per_node;
  int last = first + std::min(num_members, state.profile.devices_per_node);
  for (int member = first; member < last; ++member) {
    Device& other = state.devices[static_cast<size_t>(member)];
    RateServer& way = is_load ? other.egress : other.ingress;
    passed = std::max({passed, way.pass(start, scaled), other.l2.pass(start, bytes)});
    if (member == device) continue;
    state.count_link(is_load ? member : device, is_load ? device : member, bytes);
  }
  charge.done = passed + (is_load ? state.remote_load : state.hop) + state.multimem_extra;
  charge.reached = is_load ? start + (state.remote_load + state.multimem_extra) / 2 : charge.done;
  if (!is_load) charge.issued = state.issue_store(charge.issued, passed, state.hop);
  return charge;
}

Time Resources::copy(CopyKind kind, int source_device, int target_device, Time t, uint64_t bytes) {
  State& state = *state_;
  const Profile& profile = state.profile;
  int owner = source_device >= 0 ? source_device : target_device;
  auto alone = [bytes](double gbps) { return to_ps(static_cast<double>(bytes) / gbps); };
  if (kind == CopyKind::kHostToHost || owner < 0) return t + alone(profile.pcie_gbps);
  Device& device = state.devices[static_cast<size_t>(owner)];
  auto engine = std::min_element(device.engines_free_at.begin(), device.engines_free_at.end());
  // The servers see the copy at `t` even where it must wait for an engine: far ahead of what else
  // arrives, it would have them forget the room in between.
  Time start = std::max(t, *engine);
  Time done = t;
  switch (kind) {
    case CopyKind::kHostToDevice:
      done = std::max(device.from_host.pass(t, bytes), device.hbm.pass(t, bytes));
      start += alone(profile.pcie_gbps);
      break;
    case CopyKind::kDeviceToHost:
      done = std::max(device.to_host.pass(t, bytes), device.hbm.pass(t, bytes));
      start += alone(profile.pcie_gbps);
      break;
    case CopyKind::kWithinDevice:
      done = device.hbm.pass(t, 2 * bytes);
      start += alone(profile.hbm_gbps / 2);
      break;
    case CopyKind::kPeer: {
      CB_CHECK(state.same_node(source_device, target_device), "peers are on one node");
      uint64_t scaled = state.copy_scale.of(bytes);
      Device& target = state.devices[static_cast<size_t>(target_device)];
      done = std::max({device.egress.pass(t, scaled), target.ingress.pass(t, scaled),
                       device.hbm.pass(t, bytes), target.hbm.pass(t, bytes)});
      start += alone(profile.nvlink_gbps * profile.nvlink_copy_efficiency);
      state.count_link(source_device, target_device, bytes);
      break;
    }
    case CopyKind::kHostToHost:
      break;
  }
  *engine = std::max(done, start);
  return *engine;
}

Time Resources::fill(int device, Time t, uint64_t bytes) {
  return state_->devices[static_cast<size_t>(device)].hbm.pass(t, bytes);
}

void Resources::invalidate_l1(int device, uint32_t sm) {
  state_->devices[static_cast<size_t>(device)].sms[sm].l1.forget();
}

uint64_t Resources::link_bytes(int from, int to) const {
  return state_
      ->link_bytes[static_cast<size_t>(from) * state_->devices.size() + static_cast<size_t>(to)];
}

}  // namespace cb::sim
