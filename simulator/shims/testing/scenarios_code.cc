// Scenarios with device code: what nvcc's start-up code and launch stubs would do, by hand.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulator/shims/client/fatbin.h"
#include "simulator/shims/testing/scenarios.h"

using cb::sim::client::FatbinHeader;
using cb::sim::client::FatbinWrapper;
using cb::sim::client::kContainerMagic;
using cb::sim::client::kWrapperMagic;

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* name, int thread_limit, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void** handle, char* host_variable, char* device_address, const char* name,
                       int ext, size_t bytes, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, cudaStream_t stream);
}

namespace {

/// More than two pieces of staging memory.
constexpr size_t kPayloadBytes = (size_t{9} << 20) + 321;

char kernel_stub;
char missing_stub;
char host_variable[16];

FatbinWrapper wrapper_of(const void* container) { return {kWrapperMagic, 1, container, nullptr}; }

char* make_container() {
  auto* container = static_cast<char*>(malloc(sizeof(FatbinHeader) + kPayloadBytes));
  FatbinHeader header = {kContainerMagic, 1, sizeof(FatbinHeader), kPayloadBytes};
  memcpy(container, &header, sizeof header);
  for (size_t at = 0; at < kPayloadBytes; ++at) {
    container[sizeof header + at] = static_cast<char>(at * 31 + at / 5000);
  }
  return container;
}

void print(const char* what, cudaError_t error) { printf("%s %d\n", what, error); }

cudaError_t launch(const void* stub, dim3 grid, dim3 block, void** args, size_t shared_bytes) {
  __cudaPushCallConfiguration(grid, block, shared_bytes, nullptr);
  cudaKernel_t kernel = nullptr;
  cudaError_t error = __cudaGetKernel(&kernel, stub);
  size_t popped_bytes;
  cudaStream_t stream;
  if (__cudaPopCallConfiguration(&grid, &block, &popped_bytes, &stream) != cudaSuccess) abort();
  return error != cudaSuccess ? error
                              : __cudaLaunchKernel(kernel, grid, block, args, popped_bytes, stream);
}

void** register_code(FatbinWrapper* wrapper) {
  void** handle = __cudaRegisterFatBinary(wrapper);
  __cudaRegisterFunction(handle, &kernel_stub, nullptr, "the_kernel", -1, nullptr, nullptr, nullptr,
                         nullptr, nullptr);
  __cudaRegisterFunction(handle, &missing_stub, nullptr, "no_such_kernel", -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  __cudaRegisterVar(handle, host_variable, nullptr, "the_variable", 0, sizeof host_variable, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  return handle;
}

void try_launches(void** args) {
  print("launch", launch(&kernel_stub, dim3(2, 3, 4), dim3(32, 2, 1), args, 64));
  print("launch", launch(&kernel_stub, dim3(1), dim3(1), args, 0));
  print("no_grid", launch(&kernel_stub, dim3(0), dim3(1), args, 0));
  print("too_many_threads", launch(&kernel_stub, dim3(1), dim3(1025), args, 0));
  print("too_much_shared", launch(&kernel_stub, dim3(1), dim3(32), args, 100'000));
  print("opt_in",
        cudaFuncSetAttribute(&kernel_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 100'000));
  print("allowed_shared", launch(&kernel_stub, dim3(1), dim3(32), args, 100'000));
  print("missing", launch(&missing_stub, dim3(1), dim3(1), args, 0));
  print("cooperative",
        cudaLaunchCooperativeKernel(&kernel_stub, dim3(1'000'000), dim3(32), args, 0, nullptr));
}

void try_symbols() {
  char text[] = "symbol content!";
  print("to_symbol",
        cudaMemcpyToSymbol(host_variable, text, sizeof text, 0, cudaMemcpyHostToDevice));
  print("past_the_end",
        cudaMemcpyToSymbol(host_variable, text, sizeof text, 4, cudaMemcpyHostToDevice));
  void* address = nullptr;
  size_t bytes = 0;
  print("address", cudaGetSymbolAddress(&address, host_variable));
  print("size", cudaGetSymbolSize(&bytes, host_variable));
  printf("at %llx size %zu\n",
         static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(address)), bytes);
  print("no_symbol", cudaGetSymbolAddress(&address, &bytes));
}

}  // namespace

int scenario_launch() {
  FatbinWrapper wrapper = wrapper_of(make_container());
  void** handle = register_code(&wrapper);
  uint64_t first = 0x1122334455667788;
  uint8_t second = 0x99;
  uint32_t third = 0xaabbccdd;
  void* args[] = {&first, &second, &third};
  try_launches(args);
  try_symbols();
  __cudaUnregisterFatBinary(handle);
  print("unregistered", launch(&kernel_stub, dim3(1), dim3(1), args, 0));
  return 0;
}

int scenario_bad_module() {
  FatbinWrapper wrapper = wrapper_of(make_container());
  register_code(&wrapper);
  print("launch", launch(&kernel_stub, dim3(1), dim3(1), nullptr, 0));
  print("again", launch(&kernel_stub, dim3(1), dim3(1), nullptr, 0));
  cudaFuncAttributes attributes;
  print("attributes", cudaFuncGetAttributes(&attributes, &kernel_stub));
  return 0;
}

int scenario_linked_code() {
  struct {
    FatbinHeader header = {kContainerMagic, 1, sizeof(FatbinHeader), 8};
    char payload[8] = {};
  } first, second;
  memcpy(first.payload, "payload1", 8);
  memcpy(second.payload, "payload2", 8);
  const void* linked[] = {&first, &second, nullptr};
  FatbinWrapper wrapper = {kWrapperMagic, 2, nullptr, linked};
  register_code(&wrapper);
  print("launch", launch(&kernel_stub, dim3(1), dim3(1), nullptr, 0));
  return 0;
}

int scenario_driver() {
  auto print_result = [](const char* what, CUresult result) { printf("%s %d\n", what, result); };
  int count = 0;
  print_result("before_init", cuDeviceGetCount(&count));
  print_result("init", cuInit(0));
  print_result("count", cuDeviceGetCount(&count));
  printf("devices %d\n", count);
  CUdeviceptr memory = 0;
  print_result("no_context", cuMemAlloc(&memory, 100));
  CUcontext context = nullptr, current = nullptr;
  print_result("retain", cuDevicePrimaryCtxRetain(&context, 1));
  print_result("set", cuCtxSetCurrent(context));
  print_result("get", cuCtxGetCurrent(&current));
  printf("same %d\n", context == current);
  int device = -1;
  cudaGetDevice(&device);
  printf("runtime_device %d\n", device);
  print_result("alloc", cuMemAlloc(&memory, 100));
  print_result("memset", cuMemsetD32(memory, 5, 25));
  print_result("free", cuMemFree(memory));
  print_result("bad_context", cuCtxSetCurrent(reinterpret_cast<CUcontext>(&count)));

  static constexpr char kPtx[] = ".version 9.0\n.target sm_90a\n.address_size 64\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  print_result("load", cuModuleLoadData(&module, kPtx));
  print_result("function", cuModuleGetFunction(&function, module, "the_kernel"));
  print_result("no_function", cuModuleGetFunction(&function, module, "nothing"));
  print_result("function", cuModuleGetFunction(&function, module, "the_kernel"));
  struct {
    uint64_t first = 1;
    uint8_t second = 2;
    uint32_t third = 3;
  } packed;
  size_t packed_bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &packed_bytes, CU_LAUNCH_PARAM_END};
  print_result("launch", cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  print_result("bad_grid", cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  int threads = 0;
  print_result("attribute",
               cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  printf("threads %d\n", threads);
  print_result("unload", cuModuleUnload(module));

  void* entry = nullptr;
  CUdriverProcAddressQueryResult status;
  print_result("entry", cuGetProcAddress("cuMemAlloc", &entry, 13000, 0, &status));
  using Alloc = CUresult (*)(CUdeviceptr*, size_t);
  print_result("alloc", reinterpret_cast<Alloc>(entry)(&memory, 8));
  print_result("no_entry", cuGetProcAddress("cuNothing", &entry, 13000, 0, &status));
  printf("status %d\n", status);
  print_result("refused", cuMemMapArrayAsync(nullptr, 0, nullptr));
  const char* name = nullptr;
  print_result("name", cuGetErrorName(CUDA_ERROR_NOT_SUPPORTED, &name));
  printf("%s\n", name);
  return 0;
}
