#pragma once

#include "simulator/shims/client/modules.h"

namespace cb::sim::client {

/// The kernel behind what runtime functions take as `func`: the address of a host stub, or a
/// cudaKernel_t. nullptr for anything else.
Kernel* find_function(const void* func);
/// The handle of the kernel behind a host stub or a cudaKernel_t, or nullptr.
void* find_function_handle(const void* func);
/// The variable behind the address of its host shadow, or nullptr.
Variable* find_symbol(const void* symbol);

}  // namespace cb::sim::client
