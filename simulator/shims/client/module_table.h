#pragma once

#include <cstddef>
#include <cstdint>

namespace cb::sim::client {

struct Module;

/// Copies the table that kModuleLoad put into staging into `module`. nullptr, or what is wrong with
/// it: every offset in it is checked, so that a name or parameter is never read from outside.
const char* read_module_table(const uint8_t* staging, uint64_t bytes, Module* module);

}  // namespace cb::sim::client
