#pragma once

/// What every CommBench candidate includes, through the header of its task's family.
///
/// A candidate is CUDA C++ that exports three C functions:
///
///   extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state);
///   extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream);
///   extern "C" void      cb_teardown(void* state);
///
/// Each rank is a process of its own with one GPU. The grader calls cb_setup once per case, then
/// cb_run for a number of steps that it does not tell, then cb_teardown. It owns every input and
/// output buffer, fills inputs before a step and reads outputs after it. A step is timed from the
/// moment all ranks may start until the last rank is done: cb_run has returned, `stream` has been
/// synchronised by the grader, and no other work of the rank is running. Work on other streams
/// must be joined to `stream` (an event and cudaStreamWaitEvent).
///
/// Between steps the grader waits for all ranks. Within a step it does not: ranks may enter cb_run
/// at any distance from each other, and a step may consist of several calls of cb_run that are
/// issued back to back, each with its own buffers, without waiting for the work of the earlier
/// ones. All ranks make the same calls in the same order.

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a callback or a function below returns. Anything but CB_OK ends the evaluation, except
/// where a task asks for CB_PEER_FAILED.
typedef enum cb_status {
  CB_OK = 0,
  CB_ERR_INVALID = 1,      ///< an argument is out of range
  CB_ERR_PHASE = 2,        ///< called in cb_run, where the bootstrap is not available
  CB_ERR_UNSUPPORTED = 3,  ///< this platform or task does not offer it
  CB_ERR_CUDA = 4,         ///< a CUDA call of the candidate failed
  CB_ERR_MEMORY = 5,       ///< out of memory, or over the quota of cb_sym_alloc
  CB_ERR_INTERNAL = 6,     ///< anything else
  CB_PEER_FAILED = 7       ///< another rank is gone
} cb_status;

typedef enum cb_dtype {
  CB_U8 = 0,
  CB_I32 = 1,
  CB_I64 = 2,
  CB_F16 = 3,
  CB_BF16 = 4,
  CB_F32 = 5,
  CB_F64 = 6
} cb_dtype;

typedef enum cb_redop { CB_SUM = 0, CB_PROD = 1, CB_MIN = 2, CB_MAX = 3 } cb_redop;

/// Device memory that every rank has, with the addresses under which this rank's GPU reaches each
/// copy. `bytes` is the size on every rank.
typedef struct cb_span {
  void* local;        ///< this rank's memory
  void* const* peer;  ///< [world_size]; peer[rank] == local; NULL if peers cannot reach it
  void* multicast;    ///< address that reaches all copies at once (multimem.*), or NULL
  size_t bytes;
} cb_span;

/// The job as this rank sees it. Valid from cb_setup to the end of cb_teardown.
typedef struct cb_context cb_context;

int cb_rank(const cb_context* context);
int cb_world_size(const cb_context* context);
int cb_node(const cb_context* context);  ///< node of this rank, from 0
int cb_num_nodes(const cb_context* context);
int cb_device(const cb_context* context);  ///< CUDA device of this rank; already current
/// Node and CUDA device (as numbered on its node) of any rank.
int cb_node_of(const cb_context* context, int rank);
int cb_device_of(const cb_context* context, int rank);

/// Host bootstrap, in cb_setup and cb_teardown only (CB_ERR_PHASE in cb_run). Every rank must make
/// the same calls in the same order with the same sizes.
/// Gathers `bytes` (at most 65536 / world_size) from every rank: recv[r * bytes] is rank r's.
cb_status cb_allgather(cb_context* context, const void* send, void* recv, size_t bytes);
cb_status cb_barrier(cb_context* context);
/// Every rank gives one descriptor (-1: none) and receives one of each rank in received[r]
/// (own entry: a duplicate). Only descriptors that CUDA exported (cuMemExportToShareableHandle)
/// can be passed. The caller closes what it received.
cb_status cb_exchange_fds(cb_context* context, int fd, int* received);

/// Scratch memory that every rank can reach: zeroed, symmetric, 512-byte aligned, freed after
/// cb_teardown. Collective: every rank asks for the same `bytes`. In cb_setup only. `span->peer`
/// stays valid until cb_teardown returns. CB_ERR_UNSUPPORTED where the task's statement says that
/// there is none.
cb_status cb_sym_alloc(cb_context* context, size_t bytes, cb_span* span);

/// Call it in host loops that poll memory which a GPU writes. Costs about as much as a pause
/// instruction; on simulated hardware it lets virtual time go on.
void cb_relax(void);

/// Completed by the header of the task's family.
typedef struct cb_args cb_args;
typedef struct cb_step cb_step;

/// `args` holds maxima, data types and the addresses of all buffers that steps will use, so that
/// they can be registered. Every buffer starts at a multiple of 512 bytes; its content is undefined
/// until a step names it. `*state` is handed to the other two callbacks.
cb_status cb_setup(cb_context* context, const cb_args* args, void** state);
/// One call of a step. `step` and what it points to are valid during the call.
cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream);
void cb_teardown(void* state);

#ifdef __cplusplus
}  // extern "C"
#endif
