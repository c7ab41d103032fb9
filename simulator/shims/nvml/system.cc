// Versions, errors, and how to find a device.

#include <cstdio>
#include <cstring>

#include "simulator/shims/nvml/devices.h"

using namespace cb::sim::nvml;

namespace {

/// The driver that came with CUDA 13.0.
constexpr char kDriverVersion[] = "580.65.06";
constexpr char kNvmlVersion[] = "13.580.65.06";
constexpr int kCudaVersion = 13000;

struct ErrorText {
  int code;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "The operating system has blocked the request"},
    {18, "RM has detected an NVML/RM version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No Data"},
    {25, "Argument Version Mismatch"},
    {999, "Unknown Error"},
};

/// The device that `matches`, or kNotFound.
template <class Matches>
Return find(Device** handle, Matches matches) {
  for (int index = 0; index < device_count(); ++index) {
    if (!matches(info_of(index))) continue;
    *handle = handle_of(index);
    return kSuccess;
  }
  return kNotFound;
}

bool parse_bus_id(const char* text, unsigned (&place)[3]) {
  unsigned function = 0;
  if (sscanf(text, "%x:%x:%x.%x", &place[0], &place[1], &place[2], &function) >= 3) return true;
  place[0] = 0;
  return sscanf(text, "%x:%x.%x", &place[1], &place[2], &function) >= 2;
}

void write_uuid(const uint8_t (&uuid)[16], char (&text)[41]) {
  char* at = text + sprintf(text, "GPU-");
  for (int byte = 0; byte < 16; ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) *at++ = '-';
    at += sprintf(at, "%02x", uuid[byte]);
  }
}

}  // namespace

CB_NVML const char* nvmlErrorString(Return code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return error.text;
  }
  return "Unknown Error";
}

CB_NVML Return nvmlSystemGetDriverVersion(char* version, unsigned bytes) {
  return ready() == kSuccess ? copy_text(kDriverVersion, version, bytes) : kUninitialized;
}
CB_NVML Return nvmlSystemGetNVMLVersion(char* version, unsigned bytes) {
  return copy_text(kNvmlVersion, version, bytes);
}
CB_NVML Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = kCudaVersion;
  return kSuccess;
}
CB_NVML Return nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

CB_NVML Return nvmlDeviceGetCount_v2(unsigned* count) {
  if (ready() != kSuccess) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned>(device_count());
  return kSuccess;
}
CB_NVML Return nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

CB_NVML Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** handle) {
  if (ready() != kSuccess) return kUninitialized;
  if (handle == nullptr || index >= static_cast<unsigned>(device_count())) return kInvalidArgument;
  *handle = handle_of(static_cast<int>(index));
  return kSuccess;
}
CB_NVML Return nvmlDeviceGetHandleByIndex(unsigned index, Device** handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

CB_NVML Return nvmlDeviceGetHandleByPciBusId_v2(const char* text, Device** handle) {
  if (ready() != kSuccess) return kUninitialized;
  unsigned wanted[3];
  if (text == nullptr || handle == nullptr || !parse_bus_id(text, wanted)) return kInvalidArgument;
  return find(handle, [&](const cb::sim::DeviceInfo& info) {
    unsigned its[3];
    return parse_bus_id(info.pci_bus_id, its) && memcmp(its, wanted, sizeof its) == 0;
  });
}
CB_NVML Return nvmlDeviceGetHandleByPciBusId(const char* text, Device** handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, handle);
}

CB_NVML Return nvmlDeviceGetHandleByUUID(const char* uuid, Device** handle) {
  if (ready() != kSuccess) return kUninitialized;
  if (uuid == nullptr || handle == nullptr) return kInvalidArgument;
  return find(handle, [&](const cb::sim::DeviceInfo& info) {
    char its[41];
    write_uuid(info.uuid, its);
    return strcmp(its, uuid) == 0;
  });
}

CB_NVML Return nvmlDeviceGetUUID(Device* handle, char* uuid, unsigned bytes) {
  return about(handle, uuid, [&](const cb::sim::DeviceInfo& info, int) {
    char text[41];
    write_uuid(info.uuid, text);
    return copy_text(text, uuid, bytes);
  });
}
