#pragma once

/// Collectives. With N = world_size and `count` elements of `dtype`:
///
///   all-reduce      input[count]      output[count]      output = reduction over the ranks' inputs
///   all-gather      input[count]      output[N * count]  output[r * count ..] = rank r's input
///   reduce-scatter  input[N * count]  output[count]      output = reduction of block `rank`
///   all-to-all      input[N * count]  output[N * count]  output[r * count ..] = block `rank` of
///   rank r broadcast       input[count]      output[count]      output = input of rank `root`
///
/// A rank's buffers belong to a call only while that rank works on it, as in an application whose
/// streams are not synchronised with each other:
/// - rank r's input holds its data, and rank r's output may be written, from the moment rank r's
///   stream reaches its first cb_run of the step. Whoever reads a peer's input or writes a peer's
///   output must learn on the device that the peer has started.
/// - when rank r is done, its output is complete, and its buffers may be overwritten at once:
///   nobody may still read its input or write its output.

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
  cb_redop redop;    ///< for reductions
  size_t max_count;  ///< the largest `count` of any step
  uint32_t num_buffers;
  const cb_span* buffers;  ///< [num_buffers]: every step's input and output lie in these
};

/// Counts, buffers and offsets are the same on every rank; contents are not.
struct cb_step {
  size_t count;  ///< may be 0, may change from step to step
  int root;      ///< for broadcast, else 0
  /// This call's data inside args->buffers[input_buffer] and args->buffers[output_buffer]; only
  /// element-aligned. `peer[r]` is where rank r's input or output lies.
  cb_span input;
  cb_span output;
  uint32_t input_buffer;
  uint32_t output_buffer;
  size_t input_offset;   ///< bytes
  size_t output_offset;  ///< bytes
  /// Input and output overlap: all-reduce and broadcast have them at the same address, for
  /// all-gather input = output + rank * count elements, for reduce-scatter
  /// output = input + rank * count elements; the offset that depends on the rank is the one
  /// exception to the rule above. Where in_place is 0 the two do not overlap, and inputs must be
  /// left unchanged.
  int in_place;
};
