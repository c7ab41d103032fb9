#pragma once

#include <cstdint>

/// What a trusted rank tells its jailed host before it starts a phase. Messages go one way, over
/// a SOCK_SEQPACKET connection: a Message, its relocations, then the bytes of a C struct. The rank
/// never reads from that connection; what a host says is no evidence.
namespace cb::host {

/// Environment of a host process: the descriptor of its control connection.
inline constexpr char kControlFdVariable[] = "COMMBENCH_CONTROL_FD";
inline constexpr char kCandidatePath[] = "/box/candidate.so";
inline constexpr uint32_t kMaxMessageBytes = 128 << 10;

/// Before Phase::kSetup: one Message with cb_args. Before Phase::kRun: one for each call, with its
/// cb_step. Before Phase::kTeardown: none.
struct Message {
  uint32_t calls_left = 0;  ///< messages of this phase that follow
  int32_t rank = 0;
  int32_t world_size = 0;
  int32_t node = 0;
  int32_t num_nodes = 1;
  int32_t device = 0;
  int32_t devices_per_node = 1;
  uint32_t scratch = 0;  ///< whether cb_sym_alloc is offered
  uint32_t num_relocations = 0;
  uint32_t blob_bytes = 0;
};

/// The 8 bytes at `at` become the blob's own address plus `offset`.
struct Relocation {
  uint64_t at = 0;
  uint64_t offset = 0;
};

/// What a host reports of a callback beside the values of cb_status.
enum Status : int32_t {
  kOk = 0,
  kException = 101,     ///< an exception left a callback
  kLoadFailed = 102,    ///< the candidate's library could not be loaded
  kNoEntryPoint = 103,  ///< it lacks one of the three functions
  kDeviceFailed = 104,  ///< the current device or the stream failed after a callback
  kHostConfused = 105,  ///< the control connection brought nonsense
};

/// Exit codes of the host program itself.
inline constexpr int kExitOk = 0;
inline constexpr int kExitNoSimulator = 95;

}  // namespace cb::host
