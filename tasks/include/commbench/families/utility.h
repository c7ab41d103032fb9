#pragma once

/// Building blocks that are not transfers by themselves. Each task's statement says which fields
/// it uses; the others are zero.

#include <commbench/task.h>

struct cb_args {
  uint64_t max_rounds;         ///< the largest `rounds` of any step
  uint32_t num_buffers;
  const cb_span* buffers;      ///< [num_buffers]
};

struct cb_step {
  uint64_t rounds;
  cb_span input;
  cb_span output;
};
