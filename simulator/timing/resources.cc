#include "simulator/timing/resources.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "simulator/protocol/occupancy.h"
#include "simulator/timing/line_cache.h"
#include "simulator/timing/rate_server.h"

namespace cb::sim {
namespace {

constexpr unsigned kLineBits = 7;
constexpr uint64_t kLineBytes = 1 << kLineBits;
constexpr uint64_t kSectorBytes = 32;
/// Shared memory and L1 move this much a cycle.
constexpr uint64_t kSmBytesPerCycle = 128;
/// Accesses that spread over more than this are not looked up line by line.
constexpr uint64_t kMaxLookupBytes = 8192;

// Windows of links and memory: 131 ns, and 268 us ahead; of an SM: 65 ns, and 16 us ahead.
constexpr unsigned kLinkWindowBits = 17;
constexpr unsigned kLinkWindows = 2048;
constexpr unsigned kSmWindowBits = 16;
constexpr unsigned kSmWindows = 256;

Time to_ps(double ns) { return static_cast<Time>(ns * 1000 + 0.5); }

RateServer link(double gbps) { return {gbps, kLinkWindowBits, kLinkWindows}; }

struct Sm {
  RateServer load_store;
  RateServer remote;
  RateServer schedulers[kSchedulersPerSm];
  LineCache l1;
  bool ready = false;
};

struct CopyEngine {
  Time free_at = 0;
};

struct Device {
  RateServer l2, hbm, egress, ingress, pcie_up, pcie_down;
  LineCache l2_lines;
  std::vector<Sm> sms;
  std::vector<CopyEngine> engines;
};

}  // namespace

struct Resources::State {
  Profile profile;
  std::vector<Device> devices;
  std::vector<uint64_t> link_bytes;
  Time l1_hit, l2_hit, hbm, atomic, hop, remote_load, pcie, multimem_extra, shared_latency;
  double copy_scale = 1;  ///< bytes of a copy engine in units of bytes by SMs
  double multimem_scale = 1;

  explicit State(const Profile& p);
  Sm& sm_of(int device, uint32_t sm);
  void count_link(int from, int to, uint64_t bytes) {
    link_bytes[static_cast<size_t>(from) * devices.size() + static_cast<size_t>(to)] += bytes;
  }
  Time fetch(Device& owner, Time t, const MemoryAccess& access, LineCache* l1);
  Charge local(Device& device, Sm& sm, Time t, const MemoryAccess& access);
  Charge remote(int from, int to, Sm& sm, Time t, const MemoryAccess& access);
  Charge pinned(Device& device, Sm& sm, Time t, const MemoryAccess& access);
};

Resources::State::State(const Profile& p) : profile(p) {
  devices.resize(static_cast<size_t>(p.num_devices()));
  link_bytes.resize(devices.size() * devices.size());
  double nvlink = p.nvlink_gbps * p.nvlink_sm_efficiency;
  for (Device& device : devices) {
    device.l2 = link(p.l2_gbps);
    device.hbm = link(p.hbm_gbps);
    device.egress = link(nvlink);
    device.ingress = link(nvlink);
    device.pcie_up = link(p.pcie_gbps);
    device.pcie_down = link(p.pcie_gbps);
    device.sms.resize(p.device.num_sms);
    device.engines.resize(p.copy_engines);
  }
  l1_hit = to_ps(p.l1_hit_ns);
  l2_hit = to_ps(p.l2_hit_ns);
  hbm = to_ps(p.hbm_ns);
  atomic = to_ps(p.atomic_ns);
  hop = to_ps(p.nvlink_hop_ns);
  remote_load = to_ps(p.nvlink_load_ns);
  pcie = to_ps(p.pcie_ns);
  multimem_extra = to_ps(p.multimem_extra_ns);
  shared_latency = to_ps(p.shared_cycles / p.sm_clock_ghz);
  copy_scale = p.nvlink_sm_efficiency / p.nvlink_copy_efficiency;
  multimem_scale = p.nvlink_sm_efficiency / p.nvlink_multimem_efficiency;
}

Sm& Resources::State::sm_of(int device, uint32_t sm) {
  Sm& state = devices[static_cast<size_t>(device)].sms[sm];
  if (!state.ready) {
    double clock = profile.sm_clock_ghz;
    state.load_store = {clock * kSmBytesPerCycle, kSmWindowBits, kSmWindows};
    state.remote = {profile.sm_remote_gbps, kLinkWindowBits, kSmWindows};
    for (RateServer& scheduler : state.schedulers) scheduler = {clock, kSmWindowBits, kSmWindows};
    state.ready = true;
  }
  return state;
}

/// When memory of `owner` has delivered the access (or taken it), from its caches or HBM.
Time Resources::State::fetch(Device& owner, Time t, const MemoryAccess& access, LineCache* l1) {
  uint64_t bytes = access.sectors * kSectorBytes;
  uint64_t first = access.address >> kLineBits;
  uint64_t last = (access.end - 1) >> kLineBits;
  if (access.end - access.address > kMaxLookupBytes) {
    return std::max(owner.l2.pass(t, bytes), owner.hbm.pass(t, bytes) + hbm);
  }
  uint64_t lines = last - first + 1;
  uint64_t per_line = std::min(kLineBytes, (bytes + lines - 1) / lines);
  uint64_t from_l2 = 0;
  uint64_t from_hbm = 0;
  for (uint64_t line = first; line <= last; ++line) {
    if (l1 != nullptr && l1->touch(line, profile.l1_bytes >> kLineBits)) continue;
    bool hit = owner.l2_lines.touch(line, profile.l2_bytes >> kLineBits);
    (hit ? from_l2 : from_hbm) += per_line;
  }
  Time done = t + (l1 != nullptr ? l1_hit : l2_hit);
  if (from_l2 + from_hbm > 0) done = std::max(done, owner.l2.pass(t, from_l2 + from_hbm) + l2_hit);
  if (from_hbm > 0) done = std::max(done, owner.hbm.pass(t, from_hbm) + hbm);
  return done;
}

Resources::Charge Resources::State::local(Device& device, Sm& sm, Time t,
                                          const MemoryAccess& access) {
  Charge charge;
  charge.issued = sm.load_store.pass(t, std::max<uint64_t>(access.sectors * kSectorBytes, 1));
  switch (access.kind) {
    case MemoryAccess::Kind::kNone:
    case MemoryAccess::Kind::kLoad:
      charge.done = fetch(device, charge.issued, access, access.strong ? nullptr : &sm.l1);
      break;
    case MemoryAccess::Kind::kStore: {
      // Written through to L2; what it displaces goes to HBM sooner or later.
      uint64_t bytes = access.sectors * kSectorBytes;
      if (access.end - access.address <= kMaxLookupBytes) {
        for (uint64_t line = access.address >> kLineBits; line <= (access.end - 1) >> kLineBits;
             ++line) {
          device.l2_lines.touch(line, profile.l2_bytes >> kLineBits);
        }
      }
      charge.done = std::max(device.l2.pass(charge.issued, bytes) + l2_hit / 2,
                             device.hbm.pass(charge.issued, bytes));
      break;
    }
    case MemoryAccess::Kind::kAtomic:
    case MemoryAccess::Kind::kReduction:
      charge.done = device.l2.pass(charge.issued, access.sectors * kSectorBytes) + atomic;
      break;
  }
  charge.reached = charge.issued + (charge.done - charge.issued) / 2;
  return charge;
}

Resources::Charge Resources::State::remote(int from, int to, Sm& sm, Time t,
                                           const MemoryAccess& access) {
  Device& self = devices[static_cast<size_t>(from)];
  Device& owner = devices[static_cast<size_t>(to)];
  uint64_t bytes = std::max<uint64_t>(access.sectors * kSectorBytes, 1);
  Charge charge;
  charge.issued = sm.load_store.pass(t, bytes);
  Time start = charge.issued;
  if (access.kind == MemoryAccess::Kind::kLoad) {
    // L1 keeps what peers own, too, until the next fence or acquire.
    if (!access.strong && access.end - access.address <= kMaxLookupBytes) {
      bool all_hit = true;
      for (uint64_t line = access.address >> kLineBits; line <= (access.end - 1) >> kLineBits;
           ++line) {
        all_hit &= sm.l1.touch(line, profile.l1_bytes >> kLineBits);
      }
      if (all_hit) {
        charge.done = start + l1_hit;
        charge.reached = charge.done;
        return charge;
      }
    }
    Time memory = fetch(owner, start, access, nullptr);
    // The latency of a peer's memory is part of the link's round trip; waiting for it is not.
    Time waited = memory > start + hbm ? memory - hbm : start;
    Time passed = std::max(owner.egress.pass(start, bytes), self.ingress.pass(start, bytes));
    charge.done = std::max(passed, waited) + remote_load;
    charge.reached = start + remote_load / 2;
    count_link(to, from, bytes);
    return charge;
  }
  bool is_store = access.kind == MemoryAccess::Kind::kStore;
  Time passed = std::max(self.egress.pass(start, bytes), owner.ingress.pass(start, bytes));
  if (is_store) passed = std::max(passed, sm.remote.pass(start, bytes));
  passed = std::max(passed, owner.l2.pass(start, bytes));
  count_link(from, to, bytes);
  charge.done = passed + (access.kind == MemoryAccess::Kind::kAtomic ? remote_load : hop);
  charge.reached = is_store ? charge.done : passed + hop;
  return charge;
}

Resources::Charge Resources::State::pinned(Device& device, Sm& sm, Time t,
                                           const MemoryAccess& access) {
  uint64_t bytes = std::max<uint64_t>(access.sectors * kSectorBytes, 1);
  Charge charge;
  charge.issued = sm.load_store.pass(t, bytes);
  bool is_load = access.kind == MemoryAccess::Kind::kLoad;
  bool returns = is_load || access.kind == MemoryAccess::Kind::kAtomic;
  RateServer& way = is_load ? device.pcie_down : device.pcie_up;
  charge.done = way.pass(charge.issued, bytes) + (returns ? pcie : pcie / 2);
  charge.reached = charge.issued + pcie / 2;
  return charge;
}

Resources::Resources(const Profile& profile) : state_(std::make_unique<State>(profile)) {}
Resources::~Resources() = default;

Time Resources::issue(int device, uint32_t sm, uint32_t warp_slot, Time t, uint32_t slots) {
  Sm& state = state_->sm_of(device, sm);
  return state.schedulers[warp_slot % kSchedulersPerSm].pass(t, slots);
}

Resources::Charge Resources::access(int device, uint32_t sm_index, Time t,
                                    const MemoryAccess& access) {
  State& state = *state_;
  Sm& sm = state.sm_of(device, sm_index);
  switch (access.target) {
    case MemoryAccess::Target::kShared: {
      uint64_t passes = std::max<uint32_t>(access.conflicts, 1);
      Time issued = sm.load_store.pass(t, passes * kSmBytesPerCycle);
      Time done = issued + state.shared_latency;
      return {.issued = issued, .done = done, .reached = done};
    }
    case MemoryAccess::Target::kLocal:
    case MemoryAccess::Target::kParam: {
      Time issued = sm.load_store.pass(t, std::max<uint32_t>(access.bytes, 1));
      Time done = issued + state.l1_hit;
      return {.issued = issued, .done = done, .reached = done};
    }
    case MemoryAccess::Target::kPinned:
      return state.pinned(state.devices[static_cast<size_t>(device)], sm, t, access);
    case MemoryAccess::Target::kMulticast:
    case MemoryAccess::Target::kDevice:
      break;
  }
  if (access.device == device || access.device >= state.devices.size()) {
    return state.local(state.devices[static_cast<size_t>(device)], sm, t, access);
  }
  return state.remote(device, access.device, sm, t, access);
}

Resources::Charge Resources::multicast(int device, uint32_t sm_index, Time t,
                                       const MemoryAccess& access, int num_members) {
  State& state = *state_;
  Sm& sm = state.sm_of(device, sm_index);
  Device& self = state.devices[static_cast<size_t>(device)];
  uint64_t bytes = std::max<uint64_t>(access.sectors * kSectorBytes, 1);
  auto scaled = static_cast<uint64_t>(static_cast<double>(bytes) * state.multimem_scale);
  bool is_load = access.kind == MemoryAccess::Kind::kLoad;
  Charge charge;
  charge.issued = sm.load_store.pass(t, bytes);
  Time start = charge.issued;
  Time passed = is_load ? self.ingress.pass(start, scaled) : self.egress.pass(start, scaled);
  // Members are devices of one node, in order of their numbers.
  int first = device / state.profile.devices_per_node * state.profile.devices_per_node;
  for (int member = first; member < first + num_members; ++member) {
    if (member >= static_cast<int>(state.devices.size())) break;
    Device& other = state.devices[static_cast<size_t>(member)];
    passed = std::max(
        passed, is_load ? other.egress.pass(start, scaled) : other.ingress.pass(start, scaled));
    if (member == device) continue;
    state.count_link(is_load ? member : device, is_load ? device : member, bytes);
  }
  charge.done = passed + (is_load ? state.remote_load : state.hop) + state.multimem_extra;
  charge.reached = is_load ? start + state.remote_load / 2 : charge.done;
  return charge;
}

Time Resources::copy(CopyKind kind, int source_device, int target_device, Time t, uint64_t bytes) {
  State& state = *state_;
  int owner = source_device >= 0 ? source_device : target_device;
  if (kind == CopyKind::kHostToHost || owner < 0) {
    return t + to_ps(static_cast<double>(bytes) / state.profile.pcie_gbps);
  }
  Device& device = state.devices[static_cast<size_t>(owner)];
  auto engine = std::min_element(
      device.engines.begin(), device.engines.end(),
      [](const CopyEngine& a, const CopyEngine& b) { return a.free_at < b.free_at; });
  Time start = std::max(t, engine->free_at);
  Time done = start;
  switch (kind) {
    case CopyKind::kHostToDevice:
      done = device.pcie_down.pass(start, bytes);
      break;
    case CopyKind::kDeviceToHost:
      done = device.pcie_up.pass(start, bytes);
      break;
    case CopyKind::kWithinDevice:
      done = device.hbm.pass(start, 2 * bytes);
      break;
    case CopyKind::kPeer: {
      auto scaled = static_cast<uint64_t>(static_cast<double>(bytes) * state.copy_scale);
      Device& target = state.devices[static_cast<size_t>(target_device)];
      done = std::max(device.egress.pass(start, scaled), target.ingress.pass(start, scaled));
      state.count_link(source_device, target_device, bytes);
      break;
    }
    case CopyKind::kHostToHost:
      break;
  }
  engine->free_at = done;
  return done;
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
