#pragma once

#include <cstdint>
#include <string>

namespace cb::sim {

/// Sends the daemon random and damaged messages as the host of rank 0, while rank 1 is an honest
/// host. The same seed sends the same messages. Returns what went wrong: an answer that rank 1
/// should have got, or memory of it that changed; empty: nothing. A crash or a hang is for the
/// caller to notice.
std::string fuzz_protocol(uint64_t seed, int num_messages);

}  // namespace cb::sim
