// The library's own beginning and end.

#include "simulator/shims/client/process.h"

namespace {

__attribute__((constructor)) void on_load() { cb::sim::client::connect_from_environment(); }

__attribute__((destructor)) void on_unload() { cb::sim::client::end_process(); }

}  // namespace
