#pragma once

// What commbench-host calls on the simulator: C functions that the libcudart shim exports beside
// CUDA's. On real hardware the symbols are absent, and the host talks to its trusted rank instead.

#include <cstddef>
#include <cstdint>

extern "C" {

/// Says that `finished_phase` (a cb::sim::Phase) ended with `status` (a cb_status) and `error` (may
/// be NULL), then waits in virtual time until the trusted rank starts the next phase. Returns that
/// phase, or kExit when the simulator is gone.
uint32_t commbench_sim_control_wait(uint32_t finished_phase, int32_t status, const char* error);

/// The bootstrap of cb_context; each returns a cb_status.
int32_t commbench_sim_allgather(const void* send, void* receive, size_t bytes, int world_size);
int32_t commbench_sim_barrier();
int32_t commbench_sim_sym_alloc(size_t bytes, int world_size, uint64_t* addresses,
                                uint64_t* multicast);

/// `fd` -1: none. received[r] of rank r, -1 where it gave none or is on another node.
int32_t commbench_sim_exchange_fds(int fd, int* received, int world_size);

/// cb_relax.
void commbench_sim_relax();

}  // extern "C"
