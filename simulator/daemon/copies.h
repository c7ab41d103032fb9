#pragma once

// Copies and fills: what may be touched, how long it takes, and the bytes themselves, which move
// when the copy ends.

#include <cstdint>

namespace cb::sim {

class Call;
struct Cluster;
struct HostProcess;

/// Checks a range that a call names. False: the call has ended.
bool accept_range(Call& call, uint64_t address, uint64_t span, bool write);
/// Checks a range when the bytes move: memory may have been freed or taken back. False: the context
/// is broken.
bool still_allowed(Cluster& cluster, HostProcess& process, int device, uint64_t address,
                   uint64_t span, bool write);

void memcpy_request(Call& call);
void memcpy_2d(Call& call);
void memset_request(Call& call);

}  // namespace cb::sim
