#pragma once

namespace cb::sim::client {

/// Writes one line, "commbench sim: " and the formatted text, to stderr. Used for what a CUDA error
/// code cannot say: what is not supported, and why the simulator is out of reach.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace cb::sim::client
