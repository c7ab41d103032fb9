#include "simulator/shims/client/jit.h"

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulator/protocol/occupancy.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {
namespace {

/// The fewest registers that the compiler can work with; smaller limits count as this one.
constexpr uint32_t kFewestRegisters = 16;
constexpr uint32_t kMostRegisters = 255;
constexpr uint64_t kMostThreads = 1024;

/// Options are passed in the pointer itself.
uint64_t number_of(void* value) { return reinterpret_cast<uintptr_t>(value); }
uint32_t small_number_of(void* value) { return static_cast<uint32_t>(number_of(value)); }

void limit_registers(JitOptions* read, uint64_t registers) {
  auto limit =
      static_cast<uint32_t>(std::clamp<uint64_t>(registers, kFewestRegisters, kMostRegisters));
  read->max_registers = read->max_registers == 0 ? limit : std::min(read->max_registers, limit);
}

cudaError_t check_target(uint32_t target) {
  const DeviceInfo& device = device_info(this_thread().device());
  uint32_t plain = target % CU_COMPUTE_ACCELERATED_TARGET_BASE;
  if (plain == device.compute_major * 10 + device.compute_minor) return cudaSuccess;
  return CB_REFUSE("CU_JIT_TARGET of another architecture than the device's");
}

cudaError_t check_range(uint32_t value, uint32_t most) {
  return value <= most ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t read_option(int option, void** value, JitOptions* read) {
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
      if (small_number_of(*value) > 0) limit_registers(read, small_number_of(*value));
      return cudaSuccess;
    case CU_JIT_THREADS_PER_BLOCK: {
      uint64_t threads = small_number_of(*value);
      if (threads == 0 || threads > kMostThreads) return cudaErrorInvalidValue;
      limit_registers(read, device_info(this_thread().device()).registers_per_sm / threads);
      read->threads = value;
      return cudaSuccess;
    }
    case CU_JIT_WALL_TIME:
      read->wall_time = value;
      return cudaSuccess;
    case CU_JIT_INFO_LOG_BUFFER:
      read->info.text = static_cast<char*>(*value);
      return cudaSuccess;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      read->info.capacity = small_number_of(*value);
      read->info.written = value;
      return cudaSuccess;
    case CU_JIT_ERROR_LOG_BUFFER:
      read->error.text = static_cast<char*>(*value);
      return cudaSuccess;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      read->error.capacity = small_number_of(*value);
      read->error.written = value;
      return cudaSuccess;
    case CU_JIT_OPTIMIZATION_LEVEL:
      return check_range(small_number_of(*value), 4);
    case CU_JIT_TARGET:
      return check_target(small_number_of(*value));
    case CU_JIT_FALLBACK_STRATEGY:
      return check_range(small_number_of(*value), CU_PREFER_BINARY);
    case CU_JIT_LOG_VERBOSE:
      read->is_verbose = small_number_of(*value) != 0;
      return cudaSuccess;
    case CU_JIT_CACHE_MODE:
      return check_range(small_number_of(*value), CU_JIT_CACHE_OPTION_CA);
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    // These matter to code that is optimised when it is linked, which is refused where it comes.
    case CU_JIT_FTZ:
    case CU_JIT_PREC_DIV:
    case CU_JIT_PREC_SQRT:
    case CU_JIT_FMA:
      return cudaSuccess;
    case CU_JIT_LTO:
      return number_of(*value) == 0 ? cudaSuccess : CB_REFUSE("CU_JIT_LTO");
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
      return CB_REFUSE("CU_JIT_GLOBAL_SYMBOL_*");
    case CU_JIT_MIN_CTA_PER_SM:
      return CB_REFUSE("CU_JIT_MIN_CTA_PER_SM");
    case CU_JIT_MAX_THREADS_PER_BLOCK:
      return CB_REFUSE("CU_JIT_MAX_THREADS_PER_BLOCK");
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
      return CB_REFUSE("CU_JIT_OVERRIDE_DIRECTIVE_VALUES");
    default:
      return cudaErrorInvalidValue;
  }
}

/// One line for each kernel, as ptxas -v has it, until the buffer is full.
void write_kernels(const Module& module, const JitLog& log) {
  size_t used = 0;
  for (uint32_t at = 0; at < module.num_kernels && used + 1 < log.capacity; ++at) {
    const KernelInfo& kernel = module.kernels[at];
    int added = snprintf(log.text + used, log.capacity - used,
                         "info: kernel %s uses %u registers, %u bytes of shared and %u of local "
                         "memory\n",
                         name_of(module, kernel), kernel.registers, kernel.static_shared_bytes,
                         kernel.local_bytes);
    used = std::min(used + static_cast<size_t>(std::max(added, 0)), log.capacity - 1);
  }
  if (log.written != nullptr) *log.written = reinterpret_cast<void*>(used);
}

/// Virtual time in nanoseconds; 0 when it cannot be asked for.
uint64_t time_now() {
  Call call(Op::kTimeNow);
  return call.wait_raw() ? call.result(0) : 0;
}

}  // namespace

cudaError_t read_jit_options(const int* options, void** values, unsigned count, JitOptions* read) {
  if (count > 0 && (options == nullptr || values == nullptr)) return cudaErrorInvalidValue;
  for (unsigned at = 0; at < count; ++at) {
    cudaError_t error = read_option(options[at], &values[at], read);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

void write_jit_log(const JitLog& log, const char* text) {
  size_t bytes = 0;
  if (log.text != nullptr && log.capacity > 0) {
    bytes = std::min(strlen(text), log.capacity - 1);
    memcpy(log.text, text, bytes);
    log.text[bytes] = '\0';
  }
  if (log.written != nullptr) *log.written = reinterpret_cast<void*>(bytes);
}

cudaError_t load_module_with(Module* module, const JitOptions& options) {
  module->max_registers = options.max_registers;
  uint64_t start_ns = options.wall_time == nullptr ? 0 : time_now();
  cudaError_t error = load_module(module);
  write_jit_log(options.error,
                error != cudaSuccess && module->fault != nullptr ? module->fault : "");
  write_jit_log(options.info, "");
  if (error == cudaSuccess && options.is_verbose && options.info.text != nullptr &&
      options.info.capacity > 0) {
    write_kernels(*module, options.info);
  }
  if (options.wall_time != nullptr) {
    float elapsed_ms = static_cast<float>(time_now() - start_ns) * 1e-6F;
    memcpy(options.wall_time, &elapsed_ms, sizeof elapsed_ms);
  }
  if (options.threads != nullptr) {
    uint64_t registers = device_info(this_thread().device()).registers_per_sm;
    uint64_t threads = std::min<uint64_t>(registers / options.max_registers, kMostThreads);
    *options.threads = reinterpret_cast<void*>(threads / kWarpSize * kWarpSize);
  }
  return error;
}

}  // namespace cb::sim::client
