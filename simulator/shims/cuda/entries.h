#pragma once

namespace cb::sim::client {

/// What cuGetProcAddress and cudaGetDriverEntryPoint find.
struct EntryLookup {
  void* function = nullptr;
  bool name_known = false;  ///< the name exists, if perhaps only in later versions
};

/// The function that `name` ("cuMemAlloc", without a version) means in CUDA `version` (13000 for
/// 13.0), in its per-thread default stream form if wanted and there is one.
EntryLookup find_entry(const char* name, int version, bool per_thread);

}  // namespace cb::sim::client
