#pragma once

// cudaHostRegister. Pages that the program owns become pages that the simulator's devices reach:
// the simulator makes as many (the memory of cudaHostAlloc), and these take the place of the
// program's, at the same addresses and with the same content.
//
// The simulator trusts nothing of this: it makes and seals the pages itself, knows them by a device
// address of its own choice and never learns where the program maps them. A program that maps them
// elsewhere, or not at all, harms only itself.
//
// Device code uses the address that cudaHostGetDevicePointer gives, which differs from the host's:
// cudaDevAttrCanUseHostPointerForRegisteredMem is 0. Another thread must not write to the pages
// while they are being registered: what it writes then may be lost.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cb::sim::client {

struct Registration {
  uint64_t host = 0;  ///< as registered
  uint64_t bytes = 0;
  uint64_t alias = 0;  ///< device address of `host`
  int device = 0;
  unsigned flags = 0;

  uint64_t alias_of(uint64_t address) const { return alias + (address - host); }
};

cudaError_t register_host(void* pointer, size_t bytes, unsigned flags);
cudaError_t unregister_host(void* pointer);
/// The registration that holds a host address.
bool find_registration(const void* pointer, Registration* found);
/// The registration that holds the device address.
bool find_registration_of_alias(uint64_t alias, Registration* found);
/// What the simulator calls [pointer, pointer + bytes): the device address if all of it is
/// registered, else the pointer.
const void* known_to_devices(const void* pointer, uint64_t bytes);
inline void* known_to_devices(void* pointer, uint64_t bytes) {
  return const_cast<void*>(known_to_devices(const_cast<const void*>(pointer), bytes));
}
/// Gives the program its own pages back, for what was registered with `device`, which is reset.
void remove_registrations_of(int device);

}  // namespace cb::sim::client
