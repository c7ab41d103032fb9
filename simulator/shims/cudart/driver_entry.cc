#include "simulator/shims/cuda/entries.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

cudaError_t entry_point(const char* symbol, void** function, unsigned version,
                        unsigned long long flags, cudaDriverEntryPointQueryResult* status,
                        bool per_thread_default) {
  return api([&] {
    constexpr unsigned long long kKnownFlags =
        cudaEnableLegacyStream | cudaEnablePerThreadDefaultStream;
    if (symbol == nullptr || function == nullptr || (flags & ~kKnownFlags) != 0 ||
        flags == kKnownFlags || version > CUDART_VERSION) {
      return cudaErrorInvalidValue;
    }
    bool per_thread = flags == cudaEnablePerThreadDefaultStream ||
                      (flags == cudaEnableDefault && per_thread_default);
    EntryLookup lookup = find_entry(symbol, version, per_thread);
    *function = lookup.function;
    if (status != nullptr) {
      *status = lookup.function != nullptr ? cudaDriverEntryPointSuccess
                : lookup.name_known        ? cudaDriverEntryPointVersionNotSufficent
                                           : cudaDriverEntryPointSymbolNotFound;
    }
    return cudaSuccess;
  });
}

}  // namespace

CB_API cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function,
                                           unsigned long long flags,
                                           cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, CUDART_VERSION, flags, status, false);
}
CB_API cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                                unsigned long long flags,
                                                cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, CUDART_VERSION, flags, status, true);
}

CB_API cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                    unsigned version, unsigned long long flags,
                                                    cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, version, flags, status, false);
}
CB_API cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                         unsigned version, unsigned long long flags,
                                                         cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, version, flags, status, true);
}
