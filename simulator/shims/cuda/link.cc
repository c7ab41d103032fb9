#include "simulator/shims/client/linker.h"

#include "simulator/shims/cuda/driver.h"

// The header maps the plain names to the newest versions; both are defined here.
#undef cuLinkCreate
#undef cuLinkAddData
#undef cuLinkAddFile

using namespace cb::sim::client;

namespace {

/// Reads the options and gives them to `body`.
template <class Body>
CUresult with_options(unsigned count, const CUjit_option* options, void** values, Body body) {
  return context_call([&] {
    JitOptions read;
    cudaError_t error =
        read_jit_options(reinterpret_cast<const int*>(options), values, count, &read);
    return error == cudaSuccess ? body(read) : error;
  });
}

}  // namespace

CB_DRIVER CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values,
                                   CUlinkState* state) {
  return with_options(count, options, values, [&](const JitOptions& read) {
    return create_link(reinterpret_cast<void**>(state), read);
  });
}
CB_DRIVER CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values,
                                CUlinkState* state) {
  return cuLinkCreate_v2(count, options, values, state);
}

CB_DRIVER CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data,
                                    size_t bytes, const char*, unsigned count,
                                    CUjit_option* options, void** values) {
  return with_options(count, options, values, [&](const JitOptions& read) {
    return add_link_input(state, type, data, bytes, read);
  });
}
CB_DRIVER CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                                 const char* name, unsigned count, CUjit_option* options,
                                 void** values) {
  return cuLinkAddData_v2(state, type, data, bytes, name, count, options, values);
}

CB_DRIVER CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                                    unsigned count, CUjit_option* options, void** values) {
  return with_options(count, options, values, [&](const JitOptions& read) {
    return add_link_file(state, type, path, read);
  });
}
CB_DRIVER CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path,
                                 unsigned count, CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}

CB_DRIVER CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  return context_call([&] { return complete_link(state, image, bytes); });
}

CB_DRIVER CUresult cuLinkDestroy(CUlinkState state) {
  return driver_call([&] { return destroy_link(state); });
}
