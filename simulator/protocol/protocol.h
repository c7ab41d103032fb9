#pragma once

// The messages between the shims in a host process and commbench-simd. Plain data that both sides
// compile; the shims include nothing else of ours. Every value that comes from a host process is
// hostile: the daemon copies a message before it reads it, and checks every field.
//
// One SOCK_SEQPACKET connection belongs to one host thread: the daemon made the pair, so identity
// is the descriptor. A request is one message: Request, then `payload_bytes` bytes. A two-way
// request gets one message back: Reply, then its payload. A one-way request gets none; its errors
// become the context's sticky error. Bulk data goes through the connection's staging memory, a
// sealed memfd of kStagingBytes that both sides map.

#include <cstddef>
#include <cstdint>

namespace cb::sim {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr uint32_t kMaxPayloadBytes = 65536;
inline constexpr uint32_t kMaxReplyFds = 32;  ///< descriptors with one reply; as many as ranks
inline constexpr uint64_t kStagingBytes = uint64_t{4} << 20;

/// Environment of a host process on the simulator: descriptors of its first thread's connection
/// and staging memory.
inline constexpr char kConnectionFdVariable[] = "COMMBENCH_SIM_FD";
inline constexpr char kStagingFdVariable[] = "COMMBENCH_SIM_STAGING_FD";

/// All device and pinned-host addresses lie in one window, at the same place in every process. A
/// host process maps it PROT_NONE, so that dereferencing a device pointer is a crash, as on
/// hardware.
inline constexpr uint64_t kWindowBase = 0x200000000000;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 42;
/// Each rank allocates in an arena of its own, so that addresses do not depend on the order in
/// which ranks ask.
inline constexpr uint64_t kArenaBytes = uint64_t{1} << 37;

/// What a request asks for. `args` of Request are listed as a0, a1, ...; results as r0, r1, ...
/// Values of cudaError_t travel in Reply::status. (1) marks one-way requests.
enum class Op : uint16_t {
  kInvalid = 0,

  // Threads, time, control. First request of every connection is kHello.
  kHello,         ///< a0 version, a1 the thread's id in its own PID namespace (a hint).
                  ///< Payload of the reply: HelloReply, then DeviceInfo[num_devices]
  kBye,           ///< (1) this thread ends; a0 1: so does the process, without saying it per thread
  kThreadNew,     ///< r0 thread id; descriptors of its connection and staging come along
  kThreadJoin,    ///< a0 thread id; returns when it has said kBye or is gone
  kTimeNow,       ///< r0 virtual time of this thread, ns since the start of the job
  kSleep,         ///< a0 ns; returns that much later in virtual time. a1 1: kThreadWake ends it
                  ///< early; r0 1 if it did
  kRelax,         ///< cb_relax: lets virtual time go on a little
  kControlWait,   ///< a0 Phase just finished (kNone at start), a1 cb_status; payload: error text.
                  ///< Returns when the trusted rank starts the next phase: r0 Phase
  kAllgather,     ///< payload: this rank's bytes. Reply payload: world_size times as many
  kBarrier,       ///< bootstrap barrier
  kSymAlloc,      ///< a0 bytes. Reply payload: u64 address per rank; r0 multicast address or 0
  kExchangeFds,   ///< a0 1: a descriptor that kMemExport made goes along. Reply payload: for each
                  ///< rank 1 byte, whether it gave one; those come along in the order of ranks
  kThreadWake,    ///< (1) a0 thread id of this process: ends its present or next kSleep that may be
                  ///< ended. Wakes are not counted: two before one sleep are one
  kKernelOutput,  ///< Reply payload: text that kernels of this process printed (vprintf) and that
                  ///< was not fetched yet; r0 bytes that remain

  // Modules.
  kModuleLoad,     ///< a0 image bytes, in staging [0, a0), or a1 != 0: bytes continue, r0 unset.
                   ///< a2 most registers per thread, 0: any. The image is a fatbin or a
                   ///< LinkedImage. r0 module id, r1 bytes of the ModuleTable now in staging; of
                   ///< an image that is refused the payload of the reply says why
  kModuleUnload,   ///< (1) a0 module id
  kSymbolAddress,  ///< a0 module id, a1 variable index, a2 device: r0 address there, r1 bytes

  // Memory. Which device is current is known to the client only, so that every request says it.
  kMalloc,     ///< a0 bytes, a1 device: r0 address
  kFree,       ///< a0 address; waits for the device like cudaFree
  kHostAlloc,  ///< a0 bytes, a1 cudaHostAlloc flags, a2 device, a3 1: managed: r0 address; a memfd
               ///< of whole pages comes along
  kHostFree,   ///< a0 address
  kPointerInfo,  ///< a0 address: r0 PointerKind, r1 device, r2 allocation base, r3 its bytes, r4
                 ///< PointerFlag bits
  kMemInfo,      ///< a0 device: r0 free, r1 total
  kPeerAccess,   ///< a0 device, a1 peer device, a2 1 enable / 0 disable
  kIpcGetMem,    ///< a0 address: r0, r1 token
  kIpcOpenMem,   ///< a0, a1 token, a2 device: r0 address (of the allocation)
  kIpcCloseMem,  ///< a0 address
  // Virtual memory management. Devices are numbered on the node; errors are those of the driver
  // API.
  kMemCreate,        ///< a0 bytes, a1 device, a2 CUmemAllocationHandleType bits: r0 handle
  kMemRelease,       ///< a0 handle
  kMemReserve,       ///< a0 bytes, a1 alignment: r0 address
  kMemUnreserve,     ///< a0 address, a1 bytes
  kMemMap,           ///< a0 address, a1 bytes, a2 offset, a3 handle; waits until all devices have
                     ///< joined if that is a multicast object
  kMemUnmap,         ///< a0 address, a1 bytes
  kMemSetAccess,     ///< a0 address, a1 bytes, a2 device, a3 CUmemAccess_flags
  kMemGetAccess,     ///< a0 address, a1 device: r0 CUmemAccess_flags
  kMemRetain,        ///< a0 address: r0 handle
  kMemProperties,    ///< a0 handle: r0 1 for a multicast object, r1 device, r2 handle types
  kMemExport,        ///< a0 handle: a descriptor comes along
  kMemImport,        ///< a descriptor goes along: r0 handle
  kMulticastCreate,  ///< a0 bytes, a1 devices, a2 handle types: r0 handle
  kMulticastAdd,     ///< a0 handle, a1 device
  kMulticastBind,    ///< a0 handle, a1 offset, a2 handle of memory, a3 offset there, a4 bytes;
                     ///< waits until all devices have joined
  kMulticastBindAddress,  ///< a0 handle, a1 offset, a2 address, a3 bytes; waits likewise
  kMulticastUnbind,       ///< a0 handle, a1 device, a2 offset, a3 bytes

  kDeviceReset,  ///< a0 device: waits for it, then frees all that this process has on it (memory,
                 ///< streams, events, peer access, module instances)

  // Streams and events. Ids are chosen by the client, unique per process; kNullStream is the
  // legacy default stream of the device given, kPerThreadStream that of the thread.
  kStreamCreate,   ///< (1) a0 id, a1 flags (cudaStreamNonBlocking), a2 priority, a3 device
  kStreamDestroy,  ///< (1) a0 id
  kStreamSync,     ///< a0 id, a1 device
  kStreamQuery,    ///< a0 id, a1 device: status cudaSuccess or cudaErrorNotReady
  kStreamWait,     ///< (1) a0 stream, a1 device, a2 event
  kDeviceSync,     ///< a0 device
  kEventCreate,    ///< (1) a0 id, a1 flags, a2 device
  kEventDestroy,   ///< (1) a0 id
  kEventRecord,    ///< (1) a0 event, a1 stream, a2 device
  kEventSync,      ///< a0 event
  kEventQuery,     ///< a0 event
  kEventElapsed,   ///< a0 start, a1 end: r0 picoseconds between them (two's complement)
  kIpcGetEvent,    ///< a0 event: r0, r1 token
  kIpcOpenEvent,   ///< a0, a1 token, a2 new event id, a3 device

  // Work. A pageable address is one outside the window; its bytes are in staging.
  kMemcpy,        ///< a0 dst, a1 src, a2 bytes, a3 stream, a4 device, flags CopyFlag
  kMemcpy2D,      ///< payload: Copy2D, flags CopyFlag; pageable rows are packed in staging
  kMemset,        ///< a0 dst, a1 value pattern, a2 bytes per element (1, 2, 4), a3 elements a row,
                  ///< a4 rows, a5 pitch bytes, a6 stream, a7 device, flags CopyFlag
  kLaunch,        ///< (1) payload: Launch, then the packed parameters
  kHostFunction,  ///< (1) a0 stream, a1 device, a2 what kHostFunctionNext answers, not 0; a3 1:
                  ///< also when the context breaks
  kHostFunctionNext,  ///< The host function that the answer before named is over. Returns when the
                      ///< turn of another has come: r0 its a2 or 0, r1 error of the context. One
                      ///< thread of the process asks, and nobody waits for that thread's end
  kStreamMemory,      ///< a0 stream, a1 device; payload: StreamMemoryOp[]
  // Stream-ordered memory. Pools have numbers of the daemon's; devices are numbered on the node.
  kPoolCreate,         ///< a0 device, a1 handle types, a2 most bytes or 0: r0 pool
  kPoolDefault,        ///< a0 device: r0 pool
  kPoolDestroy,        ///< a0 pool; it lives on while memory of it is in use
  kPoolTrim,           ///< a0 pool, a1 bytes to keep
  kPoolGet,            ///< a0 pool, a1 cudaMemPoolAttr: r0 value
  kPoolSet,            ///< a0 pool, a1 cudaMemPoolAttr, a2 value
  kPoolGetAccess,      ///< a0 pool, a1 device: r0 cudaMemAccessFlags
  kPoolSetAccess,      ///< a0 pool, a1 device, a2 cudaMemAccessFlags
  kPoolExport,         ///< a0 pool: a descriptor comes along
  kPoolImport,         ///< a descriptor goes along: r0 pool, r1 device, r2 handle types
  kPoolExportPointer,  ///< a0 address: r0, r1 token
  kPoolImportPointer,  ///< a0 pool, a1, a2 token: r0 address, r1 bytes
  kMallocAsync,        ///< a0 bytes, a1 stream, a2 device, a3 pool: r0 address
  kFreeAsync,          ///< a0 address, a1 stream, a2 device
  kManagedPrefetch,  ///< a0 address, a1 bytes, a2 stream, a3 device, a4 device to go to or ~0: host
};

inline constexpr Op kLastOp = Op::kManagedPrefetch;

/// The parts of a candidate's life that the trusted rank starts one by one.
enum class Phase : uint32_t { kNone = 0, kSetup = 1, kRun = 2, kTeardown = 3, kExit = 4 };

/// What can be done with memory, besides CUmemAllocationHandleType bits below.
enum PointerFlag : uint64_t {
  kPointerHandleTypes = 0xffffffff,
  kPointerLegacyIpc = uint64_t{1} << 32,  ///< cudaIpcGetMemHandle knows it
};

enum class PointerKind : uint32_t { kUnknown = 0, kDevice = 1, kPinned = 2, kManaged = 3 };

inline constexpr uint64_t kNullStream = 0;
inline constexpr uint64_t kPerThreadStream = 2;  ///< the value of cudaStreamPerThread

/// Of launches, copies, memsets, records and waits: one of many that a graph launches at once.
inline constexpr uint16_t kPartOfGraph = 1 << 15;

/// Flags of copies and memsets.
enum CopyFlag : uint16_t {
  kCopyAsync = 1,        ///< return when the host may go on, not when the copy is done
  kCopySrcPageable = 2,  ///< the source bytes are in staging
  kCopyDstPageable = 4,  ///< deliver the bytes into staging; such a request is never one-way
  kCopyContinues = 8,    ///< a further piece of the same call: no fixed cost is charged
  kCopyPeer = 16,        ///< cudaMemcpyPeer*: no peer access needed
  kCopyOneWay = 32,      ///< no reply: with kCopyAsync and without a pageable side only
};

struct Request {
  Op op = Op::kInvalid;
  uint16_t flags = 0;
  uint32_t payload_bytes = 0;
  uint64_t sequence = 0;  ///< repeated in the reply
  uint64_t args[9] = {};
};
static_assert(sizeof(Request) == 88);

struct Reply {
  int32_t status = 0;  ///< cudaError_t; for bootstrap requests cb_status
  uint32_t payload_bytes = 0;
  uint64_t sequence = 0;
  uint64_t results[6] = {};  ///< [5] of every reply: bytes that kKernelOutput would deliver
};
static_assert(sizeof(Reply) == 64);

struct HelloReply {
  uint32_t version = 0;
  int32_t rank = 0;
  int32_t world_size = 0;
  int32_t node = 0;
  int32_t num_nodes = 0;
  int32_t device = 0;        ///< the rank's own device, numbered on its node
  uint32_t num_devices = 0;  ///< devices of the node, all visible
  uint32_t thread_id = 0;
};

/// What the runtime's attribute and property queries answer, from the hardware profile.
struct DeviceInfo {
  char name[64] = {};
  char pci_bus_id[16] = {};  ///< "0000:1b:00.0"
  uint8_t uuid[16] = {};
  uint64_t global_memory_bytes = 0;
  uint64_t shared_per_block_bytes = 0;  ///< without opt-in
  uint64_t shared_per_block_optin_bytes = 0;
  uint64_t shared_per_sm_bytes = 0;
  uint64_t reserved_shared_per_block_bytes = 0;
  uint64_t l2_bytes = 0;
  uint32_t compute_major = 0;
  uint32_t compute_minor = 0;
  uint32_t num_sms = 0;
  static constexpr uint32_t kMaxGpcs = 16;
  uint32_t num_gpcs = 0;
  uint32_t gpc_sms[kMaxGpcs] = {};  ///< their sum is num_sms
  uint32_t clock_khz = 0;
  uint32_t memory_clock_khz = 0;
  uint32_t memory_bus_bits = 0;
  uint32_t registers_per_sm = 0;
  uint32_t max_threads_per_sm = 0;
  uint32_t max_blocks_per_sm = 0;
  uint32_t copy_engines = 0;
  uint32_t multicast_supported = 0;
  uint32_t peer_mask = 0;  ///< bit d: peer access to device d of the node is possible

  constexpr bool has_clusters() const { return compute_major >= 9; }
};

/// Several fatbins to be linked: this, the size of each (uint64_t), then the fatbins.
struct LinkedImage {
  uint32_t magic = 0;
  uint32_t count = 0;
  uint32_t flags = 0;
  uint32_t reserved = 0;
  uint64_t bytes = 0;  ///< of everything
};
inline constexpr uint32_t kLinkedImageMagic = 0x4b4e4c43;
inline constexpr uint32_t kMaxLinkedFatbins = 4096;
/// Names that no fatbin defines are no error: more of them are still to come.
inline constexpr uint32_t kLinkIncomplete = 1;
/// A fatbin without PTX for the device is left out, as long as nothing of it is needed.
inline constexpr uint32_t kLinkSkipForeign = 2;
/// Longest explanation of a refused image, without a NUL.
inline constexpr uint32_t kMaxImageFaultBytes = 2048;

/// What kModuleLoad puts into staging: ModuleTable, KernelInfo[num_kernels],
/// VariableInfo[num_variables], ParamInfo[num_params], then NUL-terminated names.
struct ModuleTable {
  uint32_t num_kernels = 0;
  uint32_t num_variables = 0;
  uint32_t num_params = 0;
  uint32_t names_bytes = 0;
};

struct KernelInfo {
  uint32_t name_offset = 0;  ///< into the names
  uint32_t first_param = 0;
  uint32_t num_params = 0;
  uint32_t param_bytes = 0;
  uint32_t registers = 0;  ///< per thread, as ptxas reports
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;           ///< per thread
  uint32_t max_threads = 0;           ///< per block
  uint32_t ptx_version = 0;           ///< 90 for PTX 9.0
  uint32_t binary_version = 0;        ///< 90 for sm_90
  uint32_t required_cluster[3] = {};  ///< shape that the kernel insists on; all 0: none
  uint32_t max_cluster_blocks = 0;    ///< 0: no bound of its own
  uint32_t explicit_cluster = 0;      ///< its launch must name a shape
  uint32_t constant_bytes = 0;        ///< of the __constant__ variables that it uses
};

struct ParamInfo {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct VariableInfo {
  uint32_t name_offset = 0;
  uint32_t is_constant = 0;
  uint64_t bytes = 0;
};

struct Copy2D {
  uint64_t dst = 0, dst_pitch = 0;
  uint64_t src = 0, src_pitch = 0;
  uint64_t width_bytes = 0, height = 0;
  uint64_t stream = 0;
  uint64_t device = 0;
};

/// One operation of cuStreamBatchMemOp.
struct StreamMemoryOp {
  enum Kind : uint32_t {
    kWrite,
    kWaitGreaterOrEqual,  ///< cyclic
    kWaitEqual,
    kWaitAnd,  ///< (found & value) != 0
    kWaitNor,  ///< ~(found | value) != 0
    kBarrier,  ///< everything before it is visible; no address
    kLastKind = kBarrier,
  };
  uint32_t kind = kWrite;
  uint32_t is_64_bit = 0;
  uint64_t address = 0;
  uint64_t value = 0;
};
/// In one request: what cuStreamBatchMemOp allows.
inline constexpr size_t kMaxStreamMemoryOps = 256;

struct Launch {
  uint32_t module = 0;
  uint32_t kernel = 0;  ///< index in the ModuleTable
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {1, 1, 1};
  uint32_t explicit_cluster = 0;  ///< the launch or the kernel names that shape
  uint32_t dynamic_shared_bytes = 0;
  uint32_t max_dynamic_shared_bytes = 0;  ///< cudaFuncAttributeMaxDynamicSharedMemorySize
  uint32_t cooperative = 0;
  uint32_t programmatic_serialization = 0;  ///< may start before the kernel before it is over
  uint32_t device = 0;
  uint64_t stream = 0;
  uint32_t param_bytes = 0;
  int32_t priority = 0;  ///< as of a stream: lower is more urgent
};

}  // namespace cb::sim
