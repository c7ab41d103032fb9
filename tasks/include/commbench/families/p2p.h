#pragma once

/// Point-to-point transfers between pairs of ranks: 2p sends to 2p + 1. Where the world size is
/// odd, the last rank is idle; its cb_run is called and has nothing to do.
///
/// Source, target and output of a step are there for the whole step: the source holds its data and
/// the target may be written as soon as the sender's cb_run is called, whether or not the receiver
/// has got that far, and all stay as they are until both are done.

#include <commbench/task.h>

typedef enum cb_p2p_role { CB_P2P_IDLE = 0, CB_P2P_SENDER = 1, CB_P2P_RECEIVER = 2 } cb_p2p_role;

struct cb_args {
  cb_p2p_role role;  ///< of this rank
  int partner;       ///< the other rank of the pair, -1 for an idle rank
  size_t max_bytes;  ///< the largest `bytes` of any step
  uint32_t num_buffers;
  const cb_span* buffers;  ///< [num_buffers]: every span of a step lies in these
};

struct cb_step {
  size_t bytes;       ///< may be 0, may change from step to step
  uint64_t sequence;  ///< 1 for the first cb_run of a case, then counting
  /// The data to send: meaningful on the sender. `peer` is NULL where the task does not give peers
  /// access to it.
  cb_span source;
  /// Where the data goes on the receiver; the sender reaches it as target.peer[partner] where the
  /// task gives peers access.
  cb_span target;
  /// For tasks with a consumer: the receiver copies `target` here after the data has arrived.
  /// Not accessible to peers; all fields zero where the task has no consumer.
  cb_span output;
};
