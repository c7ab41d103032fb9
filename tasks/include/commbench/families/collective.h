#pragma once

/// Collectives. With N = world_size and `count` elements of `dtype`:
///
///   all-reduce      input[count]      output[count]      output = reduction over the ranks' inputs
///   all-gather      input[count]      output[N * count]  output[r * count ..] = rank r's input
///   reduce-scatter  input[N * count]  output[count]      output = reduction of block `rank`
///   all-to-all      input[N * count]  output[N * count]  output[r * count ..] = block `rank` of rank r
///   broadcast       input[count]      output[count]      output = input of rank `root`

#include <commbench/task.h>

typedef enum cb_collective {
  CB_ALL_REDUCE = 0,
  CB_ALL_GATHER = 1,
  CB_REDUCE_SCATTER = 2,
  CB_ALL_TO_ALL = 3,
  CB_BROADCAST = 4
} cb_collective;

struct cb_args {
  cb_collective collective;
  cb_dtype dtype;
  cb_redop redop;              ///< for reductions
  size_t max_count;            ///< the largest `count` of any step
  uint32_t num_buffers;
  const cb_span* buffers;      ///< [num_buffers]: every step's input and output lie in these
};

/// Counts, offsets and buffers are the same on every rank; contents are not.
struct cb_step {
  size_t count;                ///< may be 0, may change from step to step
  int root;                    ///< for broadcast, else 0
  /// At this step's offset inside args->buffers[input_buffer]; only element-aligned. `peer[r]` is
  /// the same place in rank r's copy.
  cb_span input;
  cb_span output;
  uint32_t input_buffer;
  uint32_t output_buffer;
  size_t input_offset;         ///< bytes
  size_t output_offset;        ///< bytes
  /// The input lies where the output goes: at the same address, or for all-gather at
  /// output + rank * count elements. Otherwise the two do not overlap, and inputs must be left
  /// unchanged.
  int in_place;
};
