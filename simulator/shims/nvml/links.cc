// NVLink: every device of a profile has all its links on NVSwitches, as in HGX boards.

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "simulator/shims/nvml/devices.h"

using namespace cb::sim::nvml;
using cb::sim::DeviceInfo;

namespace {

struct Links {
  unsigned count;
  unsigned version;  ///< NVML_NVLINK_VERSION_*
  unsigned mbps;     ///< of one link, each way, as nvidia-smi reports it
  unsigned switches;
  unsigned switch_pci_id;
};
/// Data sheets: 12 links of third generation, 18 of fourth; DGX A100 and H100 user guides: 6 and 4
/// switches.
constexpr Links kAmpere = {12, 4, 25000, 6, 0x1af110de};
constexpr Links kHopper = {18, 6, 26562, 4, 0x22a310de};
/// The switches' first PCI bus.
constexpr unsigned kFirstSwitchBus = 5;

const Links& links_of(const DeviceInfo& info) {
  return info.compute_major >= 9 ? kHopper : kAmpere;
}

template <class Result, class Body>
Return about_link(Device* handle, unsigned link, Result* result, Body body) {
  return about(handle, result, [&](const DeviceInfo& info, int) {
    const Links& links = links_of(info);
    return link < links.count ? body(links) : kInvalidArgument;
  });
}

enum P2pIndex : unsigned { kP2pRead, kP2pWrite, kP2pNvlink, kP2pAtomics, kP2pPci, kP2pUnknown };
constexpr unsigned kP2pOk = 0, kP2pNotSupported = 5;
enum Topology : unsigned { kSameNode = 40, kSystem = 50, kInternal = 0 };
/// Devices behind one processor of the two that HGX boards have.
constexpr int kDevicesPerSocket = 4;

constexpr unsigned kFabricNotSupported = 0, kFabricCompleted = 3;
/// Nothing is degraded, recovering, unhealthy, late or misconfigured.
constexpr uint32_t kHealthMask = 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8;
constexpr uint8_t kHealthy = 1;

/// The fabric manager of a single HGX H100 board: complete, without the cluster's id that only
/// systems with links between nodes have. Earlier boards have no such state.
template <class Info>
void fill_fabric(const DeviceInfo& device, Info* info) {
  memset(info->cluster_uuid, 0, sizeof info->cluster_uuid);
  info->status = kSuccess;
  info->clique_id = 0;
  info->state = device.compute_major >= 9 ? kFabricCompleted : kFabricNotSupported;
}

enum ValueType : uint32_t { kUnsignedInt = 1, kUnsignedLongLong = 3 };

bool is_between(unsigned value, unsigned first, unsigned last) {
  return value >= first && value <= last;
}

/// The link whose speed a field of older numbers gives, or -1.
int link_of_speed_field(unsigned field) {
  if (is_between(field, 84, 89)) return static_cast<int>(field - 84);
  if (is_between(field, 132, 137)) return static_cast<int>(field - 132 + 6);
  return -1;
}

/// Counters of errors on links: there are none.
bool is_error_count(unsigned field) {
  return is_between(field, 32, 59) || is_between(field, 96, 119) || is_between(field, 148, 163);
}

Return fill_number(FieldValue* value, unsigned number) {
  value->value_type = kUnsignedInt;
  value->value.as_unsigned = number;
  return kSuccess;
}

Return fill_field(const Links& links, FieldValue* value) {
  enum Field : unsigned {
    kSpeedOfAll = 90,
    kLinkCount = 91,
    kSwitchConnectedCount = 147,
    kSpeed = 164,
    kState = 165,
    kVersion = 166
  };
  int link = link_of_speed_field(value->field_id);
  if (link >= 0) {
    return fill_number(value, static_cast<unsigned>(link) < links.count ? links.mbps : 0);
  }
  if (is_error_count(value->field_id)) {
    value->value_type = kUnsignedLongLong;
    value->value.as_unsigned_long_long = 0;
    return kSuccess;
  }
  bool of_one_link = is_between(value->field_id, kSpeed, kVersion);
  if (of_one_link && value->scope_id >= links.count) return kInvalidArgument;
  switch (value->field_id) {
    case kSpeedOfAll:
    case kSpeed:
      return fill_number(value, links.mbps);
    case kLinkCount:
    case kSwitchConnectedCount:
      return fill_number(value, links.count);
    case kState:
      return fill_number(value, 1);
    case kVersion:
      return fill_number(value, links.version);
    default: {
      static bool said;
      return refuse("a field of nvmlDeviceGetFieldValues other than those of NVLink", said);
    }
  }
}

}  // namespace

CB_NVML Return nvmlDeviceGetNvLinkState(Device* handle, unsigned link, unsigned* active) {
  return about_link(handle, link, active, [&](const Links&) {
    *active = 1;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetNvLinkVersion(Device* handle, unsigned link, unsigned* version) {
  return about_link(handle, link, version, [&](const Links& links) {
    *version = links.version;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetNvLinkCapability(Device* handle, unsigned link, unsigned capability,
                                             unsigned* result) {
  enum Capability : unsigned {
    kPeers,
    kSystemMemory,
    kPeerAtomics,
    kSystemAtomics,
    kSliBridge,
    kValid,
    kCount
  };
  return about_link(handle, link, result, [&](const Links&) {
    if (capability >= kCount) return kInvalidArgument;
    *result = capability == kPeers || capability == kPeerAtomics || capability == kValid;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device* handle, unsigned link, PciInfo* info) {
  return about_link(handle, link, info, [&](const Links& links) {
    memset(info, 0, sizeof *info);
    info->bus = kFirstSwitchBus + link % links.switches;
    info->pci_device_id = links.switch_pci_id;
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02X:00.0", info->bus);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetNvLinkRemotePciInfo(Device* handle, unsigned link, PciInfoV2* info) {
  PciInfo full;
  Return result = nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, &full);
  if (result != kSuccess || info == nullptr) return info == nullptr ? kInvalidArgument : result;
  memset(info, 0, sizeof *info);
  memcpy(info, &full, offsetof(PciInfo, bus_id));
  return kSuccess;
}

CB_NVML Return nvmlDeviceGetNvLinkRemoteDeviceType(Device* handle, unsigned link, unsigned* type) {
  return about_link(handle, link, type, [&](const Links&) {
    constexpr unsigned kSwitch = 2;
    *type = kSwitch;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetP2PStatus(Device* first, Device* second, unsigned index,
                                      unsigned* status) {
  return about(first, status, [&](const DeviceInfo& info, int at) {
    int peer = index_of(second);
    if (peer < 0 || peer == at || index >= kP2pUnknown) return kInvalidArgument;
    bool reachable = (info.peer_mask >> peer & 1) != 0 && index != kP2pPci;
    *status = reachable ? kP2pOk : kP2pNotSupported;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetTopologyCommonAncestor(Device* first, Device* second, unsigned* level) {
  return about(first, level, [&](const DeviceInfo&, int at) {
    int other = index_of(second);
    if (other < 0) return kInvalidArgument;
    bool same_socket = at / kDevicesPerSocket == other / kDevicesPerSocket;
    *level = at == other ? kInternal : same_socket ? kSameNode : kSystem;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetGpuFabricInfo(Device* handle, FabricInfo* info) {
  return about(handle, info, [&](const DeviceInfo& device, int) {
    fill_fabric(device, info);
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetGpuFabricInfoV(Device* handle, FabricInfoV* info) {
  return about(handle, info, [&](const DeviceInfo& device, int) {
    if (info->version != kFabricInfoV2 && info->version != kFabricInfoV3) {
      return kArgumentVersionMismatch;
    }
    fill_fabric(device, info);
    info->health_mask = device.compute_major >= 9 ? kHealthMask : 0;
    if (info->version == kFabricInfoV3) info->health_summary = kHealthy;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetFieldValues(Device* handle, int count, FieldValue* values) {
  return about(handle, values, [&](const DeviceInfo& info, int) {
    if (count <= 0) return kInvalidArgument;
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int at = 0; at < count; ++at) {
      values[at].timestamp_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
      values[at].latency_us = 0;
      values[at].result = fill_field(links_of(info), &values[at]);
    }
    return kSuccess;
  });
}
