#include "simulator/daemon/call.h"
#include "simulator/daemon/copies.h"
#include "simulator/daemon/job.h"
#include "simulator/daemon/launches.h"
#include "simulator/daemon/memory_requests.h"
#include "simulator/daemon/modules.h"
#include "simulator/daemon/streams.h"
#include "simulator/daemon/thread_requests.h"

namespace cb::sim {
namespace {

/// Without trusted ranks there is one phase, the program's run.
void control_wait(Call& call) {
  if (call.cluster.job != nullptr) return call.cluster.job->control_wait(call);
  Answer answer;
  answer.results[0] = static_cast<uint64_t>(Phase::kExit);
  call.done(call.cluster.costs.call, answer);
}

using Handler = void (*)(Call&);

Handler handler_of(Op op) {
  switch (op) {
    case Op::kInvalid:
      return nullptr;
    case Op::kHello:
      return hello;
    case Op::kBye:
      return bye;
    case Op::kThreadNew:
      return thread_new;
    case Op::kThreadJoin:
      return thread_join;
    case Op::kTimeNow:
      return time_now;
    case Op::kSleep:
      return sleep_request;
    case Op::kRelax:
      return relax;
    case Op::kControlWait:
      return control_wait;
    case Op::kAllgather:
      return [](Call& call) { call.cluster.bootstrap.allgather(call); };
    case Op::kBarrier:
      return [](Call& call) { call.cluster.bootstrap.barrier(call); };
    case Op::kSymAlloc:
      return [](Call& call) { call.cluster.bootstrap.sym_alloc(call); };
    case Op::kThreadWake:
      return thread_wake;
    case Op::kKernelOutput:
      return kernel_output;
    case Op::kModuleLoad:
      return module_load;
    case Op::kModuleUnload:
      return module_unload;
    case Op::kSymbolAddress:
      return symbol_address;
    case Op::kMalloc:
      return malloc_request;
    case Op::kFree:
      return free_request;
    case Op::kHostAlloc:
      return host_alloc;
    case Op::kHostFree:
      return host_free;
    case Op::kPointerInfo:
      return pointer_info;
    case Op::kMemInfo:
      return memory_info;
    case Op::kPeerAccess:
      return peer_access;
    case Op::kIpcGetMem:
      return ipc_get_memory;
    case Op::kIpcOpenMem:
      return ipc_open_memory;
    case Op::kIpcCloseMem:
      return ipc_close_memory;
    case Op::kDeviceReset:
      return device_reset;
    case Op::kStreamCreate:
      return stream_create;
    case Op::kStreamDestroy:
      return stream_destroy;
    case Op::kStreamSync:
      return stream_sync;
    case Op::kStreamQuery:
      return stream_query;
    case Op::kStreamWait:
      return stream_wait;
    case Op::kDeviceSync:
      return device_sync;
    case Op::kEventCreate:
      return event_create;
    case Op::kEventDestroy:
      return event_destroy;
    case Op::kEventRecord:
      return event_record;
    case Op::kEventSync:
      return event_sync;
    case Op::kEventQuery:
      return event_query;
    case Op::kEventElapsed:
      return event_elapsed;
    case Op::kIpcGetEvent:
      return ipc_get_event;
    case Op::kIpcOpenEvent:
      return ipc_open_event;
    case Op::kMemcpy:
      return memcpy_request;
    case Op::kMemcpy2D:
      return memcpy_2d;
    case Op::kMemset:
      return memset_request;
    case Op::kLaunch:
      return launch;
  }
  return nullptr;
}

/// Requests that a thread makes while it waits for something: they do not end a row of polls.
bool is_poll(Op op) {
  return op == Op::kStreamQuery || op == Op::kEventQuery || op == Op::kRelax || op == Op::kTimeNow;
}

}  // namespace

void handle(Call& call) {
  Op op = call.request.op;
  Handler handler = handler_of(op);
  if (handler == nullptr) return call.malformed("no such request");
  if (!call.thread.said_hello && op != Op::kHello) return call.malformed("no hello");
  if (!is_poll(op)) call.thread.idle_polls = 0;
  handler(call);
}

}  // namespace cb::sim
