// The table of all driver API functions, by number. libcuda.so.1 jumps through it; names and
// versions are looked up in it. Generated: entries.inc (every symbol that NVIDIA's libcuda exports)
// and versions.inc (which symbol a name means since which CUDA version, from cudaTypedefs.h).

#include "simulator/shims/cuda/entries.h"

#include <cuda.h>

#include <cstring>

#include "simulator/shims/cuda/driver.h"

// The header maps the plain name to the newest version; both are defined here.
#undef cuGetProcAddress

// Their types do not matter here, and the header declares only some.
#define CB_ENTRY(symbol, number) extern "C" void commbench_entry_##symbol() __asm__(#symbol);
#include "simulator/shims/cuda/entries.inc"
#undef CB_ENTRY

namespace cb::sim::client {
namespace {

using Function = void (*)();

enum EntryNumber {
#define CB_ENTRY(symbol, number) kEntry_##symbol,
#include "simulator/shims/cuda/entries.inc"
#undef CB_ENTRY
};

constexpr Function kEntries[] = {
#define CB_ENTRY(symbol, number) commbench_entry_##symbol,
#include "simulator/shims/cuda/entries.inc"
#undef CB_ENTRY
};

struct VersionEntry {
  const char* name;
  int since;
  int entry;
  int per_thread_entry;  ///< -1: there is none
};

constexpr VersionEntry kVersions[] = {
#define CB_VERSION(name, since, symbol) {name, since, kEntry_##symbol, -1},
#define CB_VERSION_PER_THREAD(name, since, symbol, per_thread) \
  {name, since, kEntry_##symbol, kEntry_##per_thread},
#include "simulator/shims/cuda/versions.inc"
#undef CB_VERSION
#undef CB_VERSION_PER_THREAD
};

}  // namespace

EntryLookup find_entry(const char* name, int version, bool per_thread) {
  EntryLookup lookup;
  int best = -1;
  for (const VersionEntry& entry : kVersions) {
    if (strcmp(entry.name, name) != 0) continue;
    lookup.name_known = true;
    if (entry.since > version || entry.since < best) continue;
    best = entry.since;
    int number = per_thread && entry.per_thread_entry >= 0 ? entry.per_thread_entry : entry.entry;
    lookup.function = reinterpret_cast<void*>(kEntries[number]);
  }
  return lookup;
}

}  // namespace cb::sim::client

using namespace cb::sim::client;

/// The table, for libcuda.so.1.
extern "C" __attribute__((visibility("default"))) const void* commbench_sim_driver_entries() {
  return kEntries;
}

CB_DRIVER CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                       cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kKnownFlags =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || function == nullptr || (flags & ~kKnownFlags) != 0 ||
      flags == kKnownFlags || version > CUDA_VERSION) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  EntryLookup lookup =
      find_entry(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *function = lookup.function;
  CUdriverProcAddressQueryResult result = lookup.function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                                          : lookup.name_known
                                              ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (status != nullptr) *status = result;
  return CUDA_SUCCESS;
}

CB_DRIVER CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                    cuuint64_t flags) {
  CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
  // Without a status, as CUDA 11.3 brought it, the result says that nothing was found.
  return result == CUDA_SUCCESS && *function == nullptr ? CUDA_ERROR_NOT_FOUND : result;
}
