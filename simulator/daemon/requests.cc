#include <algorithm>

#include "simulator/daemon/call.h"
#include "simulator/daemon/copies.h"
#include "simulator/daemon/host_functions.h"
#include "simulator/daemon/job.h"
#include "simulator/daemon/launches.h"
#include "simulator/daemon/managed_memory.h"
#include "simulator/daemon/memory_pool_requests.h"
#include "simulator/daemon/memory_requests.h"
#include "simulator/daemon/modules.h"
#include "simulator/daemon/report.h"
#include "simulator/daemon/stream_memory.h"
#include "simulator/daemon/streams.h"
#include "simulator/daemon/thread_requests.h"
#include "simulator/daemon/virtual_memory_requests.h"

namespace cb::sim {
namespace {

/// Without trusted ranks there is one phase, the program's run.
void control_wait(Call& call) {
  if (call.cluster.job != nullptr) return call.cluster.job->control_wait(call);
  Answer answer;
  answer.results[0] = static_cast<uint64_t>(Phase::kExit);
  call.done(call.cluster.costs.call, answer);
}

void allgather(Call& call) { call.cluster.bootstrap.allgather(call); }
void barrier(Call& call) { call.cluster.bootstrap.barrier(call); }
void sym_alloc(Call& call) { call.cluster.bootstrap.sym_alloc(call); }
void exchange_fds(Call& call) { call.cluster.bootstrap.exchange_fds(call); }

struct Operation {
  Op op;
  const char* name;  ///< in reports
  void (*handle)(Call&);
};
constexpr Operation kOperations[] = {
    {Op::kInvalid, "invalid", nullptr},
    {Op::kHello, "hello", hello},
    {Op::kBye, "bye", bye},
    {Op::kThreadNew, "thread_new", thread_new},
    {Op::kThreadJoin, "thread_join", thread_join},
    {Op::kTimeNow, "time_now", time_now},
    {Op::kSleep, "sleep", sleep_request},
    {Op::kRelax, "relax", relax},
    {Op::kControlWait, "control_wait", control_wait},
    {Op::kAllgather, "allgather", allgather},
    {Op::kBarrier, "barrier", barrier},
    {Op::kSymAlloc, "sym_alloc", sym_alloc},
    {Op::kExchangeFds, "exchange_fds", exchange_fds},
    {Op::kThreadWake, "thread_wake", thread_wake},
    {Op::kKernelOutput, "kernel_output", kernel_output},
    {Op::kModuleLoad, "module_load", module_load},
    {Op::kModuleUnload, "module_unload", module_unload},
    {Op::kSymbolAddress, "symbol_address", symbol_address},
    {Op::kMalloc, "malloc", malloc_request},
    {Op::kFree, "free", free_request},
    {Op::kHostAlloc, "host_alloc", host_alloc},
    {Op::kHostFree, "host_free", host_free},
    {Op::kPointerInfo, "pointer_info", pointer_info},
    {Op::kMemInfo, "mem_info", memory_info},
    {Op::kPeerAccess, "peer_access", peer_access},
    {Op::kIpcGetMem, "ipc_get_mem", ipc_get_memory},
    {Op::kIpcOpenMem, "ipc_open_mem", ipc_open_memory},
    {Op::kIpcCloseMem, "ipc_close_mem", ipc_close_memory},
    {Op::kMemCreate, "mem_create", mem_create},
    {Op::kMemRelease, "mem_release", mem_release},
    {Op::kMemReserve, "mem_reserve", mem_reserve},
    {Op::kMemUnreserve, "mem_unreserve", mem_unreserve},
    {Op::kMemMap, "mem_map", mem_map},
    {Op::kMemUnmap, "mem_unmap", mem_unmap},
    {Op::kMemSetAccess, "mem_set_access", mem_set_access},
    {Op::kMemGetAccess, "mem_get_access", mem_get_access},
    {Op::kMemRetain, "mem_retain", mem_retain},
    {Op::kMemProperties, "mem_properties", mem_properties},
    {Op::kMemExport, "mem_export", mem_export},
    {Op::kMemImport, "mem_import", mem_import},
    {Op::kMulticastCreate, "multicast_create", multicast_create},
    {Op::kMulticastAdd, "multicast_add", multicast_add},
    {Op::kMulticastBind, "multicast_bind", multicast_bind},
    {Op::kMulticastBindAddress, "multicast_bind_address", multicast_bind_address},
    {Op::kMulticastUnbind, "multicast_unbind", multicast_unbind},
    {Op::kDeviceReset, "device_reset", device_reset},
    {Op::kStreamCreate, "stream_create", stream_create},
    {Op::kStreamDestroy, "stream_destroy", stream_destroy},
    {Op::kStreamSync, "stream_sync", stream_sync},
    {Op::kStreamQuery, "stream_query", stream_query},
    {Op::kStreamWait, "stream_wait", stream_wait},
    {Op::kDeviceSync, "device_sync", device_sync},
    {Op::kEventCreate, "event_create", event_create},
    {Op::kEventDestroy, "event_destroy", event_destroy},
    {Op::kEventRecord, "event_record", event_record},
    {Op::kEventSync, "event_sync", event_sync},
    {Op::kEventQuery, "event_query", event_query},
    {Op::kEventElapsed, "event_elapsed", event_elapsed},
    {Op::kIpcGetEvent, "ipc_get_event", ipc_get_event},
    {Op::kIpcOpenEvent, "ipc_open_event", ipc_open_event},
    {Op::kMemcpy, "memcpy", memcpy_request},
    {Op::kMemcpy2D, "memcpy_2d", memcpy_2d},
    {Op::kMemset, "memset", memset_request},
    {Op::kLaunch, "launch", launch},
    {Op::kHostFunction, "host_function", host_function},
    {Op::kHostFunctionNext, "host_function_next", host_function_next},
    {Op::kStreamMemory, "stream_memory", stream_memory},
    {Op::kPoolCreate, "pool_create", pool_create},
    {Op::kPoolDefault, "pool_default", pool_default},
    {Op::kPoolDestroy, "pool_destroy", pool_destroy},
    {Op::kPoolTrim, "pool_trim", pool_trim},
    {Op::kPoolGet, "pool_get", pool_get},
    {Op::kPoolSet, "pool_set", pool_set},
    {Op::kPoolGetAccess, "pool_get_access", pool_get_access},
    {Op::kPoolSetAccess, "pool_set_access", pool_set_access},
    {Op::kPoolExport, "pool_export", pool_export},
    {Op::kPoolImport, "pool_import", pool_import},
    {Op::kPoolExportPointer, "pool_export_pointer", pool_export_pointer},
    {Op::kPoolImportPointer, "pool_import_pointer", pool_import_pointer},
    {Op::kMallocAsync, "malloc_async", malloc_async},
    {Op::kFreeAsync, "free_async", free_async},
    {Op::kManagedPrefetch, "managed_prefetch", managed_prefetch},
};

/// nullptr: there is no such request.
const Operation* find_operation(Op op) {
  auto found = std::find_if(std::begin(kOperations), std::end(kOperations),
                            [op](const Operation& one) { return one.op == op; });
  return found == std::end(kOperations) || found->handle == nullptr ? nullptr : found;
}

/// Requests that a thread makes while it waits for something: they do not end a row of polls.
bool is_poll(Op op) {
  return op == Op::kStreamQuery || op == Op::kEventQuery || op == Op::kRelax || op == Op::kTimeNow;
}

}  // namespace

const char* to_string(Op op) {
  const Operation* operation = find_operation(op);
  return operation == nullptr ? "unknown" : operation->name;
}

void handle(Call& call) {
  Op op = call.request.op;
  const Operation* operation = find_operation(op);
  if (operation == nullptr) return call.malformed("no such request");
  if (!call.thread.said_hello && op != Op::kHello) return call.malformed("no hello");
  if (!is_poll(op)) call.thread.idle_polls = 0;
  operation->handle(call);
}

}  // namespace cb::sim
