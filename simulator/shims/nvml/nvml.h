#pragma once

// The binary interface of NVML as far as it is implemented: no toolkit ships its header. Numbers
// and layouts are those of driver 580's libnvidia-ml.so.1. `CB_NVML` at the start of a line marks
// an implemented function for gen/generate_tables.py.

#include <cstdint>

#define CB_NVML extern "C" __attribute__((visibility("default")))

namespace cb::sim::nvml {

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

struct Device;

struct PciInfo {
  char bus_id_legacy[16];  ///< "0000:1B:00.0"
  uint32_t domain, bus, device;
  uint32_t pci_device_id, pci_subsystem_id;
  char bus_id[32];  ///< "00000000:1B:00.0"
};
/// What nvmlDeviceGetPciInfo and its version 2 fill in.
struct PciInfoV2 {
  char bus_id_legacy[16];
  uint32_t domain, bus, device;
  uint32_t pci_device_id, pci_subsystem_id;
  uint32_t reserved[4];
};
static_assert(sizeof(PciInfo) == 68 && sizeof(PciInfoV2) == 52);

struct Memory {
  uint64_t total, free, used;
};
struct MemoryV2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};

struct FabricInfo {
  uint8_t cluster_uuid[16];
  Return status;
  uint32_t clique_id;
  uint32_t state;
};
/// Version 2 ends before `health_summary`.
struct FabricInfoV {
  uint32_t version;
  uint8_t cluster_uuid[16];
  Return status;
  uint32_t clique_id;
  uint32_t state;
  uint32_t health_mask;
  uint8_t health_summary;
};
inline constexpr uint32_t kFabricInfoV2 = 0x02000024;
inline constexpr uint32_t kFabricInfoV3 = 0x03000028;
inline constexpr uint32_t kMemoryV2 = 0x02000028;
static_assert(sizeof(MemoryV2) == 0x28 && sizeof(FabricInfoV) == 0x28);

struct FieldValue {
  uint32_t field_id;
  uint32_t scope_id;
  int64_t timestamp_us;
  int64_t latency_us;
  uint32_t value_type;
  Return result;
  union {
    double as_double;
    uint32_t as_unsigned;
    uint64_t as_unsigned_long_long;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

}  // namespace cb::sim::nvml
