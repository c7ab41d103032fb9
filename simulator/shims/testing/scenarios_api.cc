#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "simulator/shims/testing/scenarios.h"

namespace {

void print(const char* what, cudaError_t error) { printf("%s %d\n", what, error); }

}  // namespace

int scenario_memory() {
  void* first = nullptr;
  void* second = nullptr;
  print("malloc", cudaMalloc(&first, 1000));
  print("malloc", cudaMalloc(&second, 1000));
  printf("distinct %d\n", first != second && first != nullptr);
  print("malloc_null", cudaMalloc(nullptr, 10));
  print("malloc_nothing", cudaMalloc(&second, 0));
  print("free", cudaFree(first));
  print("free_null", cudaFree(nullptr));
  int host = 0;
  print("free_host_memory", cudaFree(&host));
  return 0;
}

int scenario_one_way() {
  cudaStream_t stream;
  cudaEvent_t event;
  print("create", cudaStreamCreate(&stream));
  print("create", cudaEventCreate(&event));
  for (int at = 0; at < 100; ++at) cudaEventRecord(event, stream);
  print("sync", cudaStreamSynchronize(stream));
  print("destroy", cudaEventDestroy(event));
  print("destroy", cudaStreamDestroy(stream));
  return 0;
}

int scenario_copies() {
  constexpr size_t kBytes = (size_t{9} << 20) + 12345;
  std::vector<char> source(kBytes), target(kBytes);
  for (size_t at = 0; at < kBytes; ++at) source[at] = static_cast<char>(at * 7 + at / 4096);
  void* device;
  void* other;
  cudaMalloc(&device, kBytes);
  cudaMalloc(&other, kBytes);
  print("to_device", cudaMemcpy(device, source.data(), kBytes, cudaMemcpyHostToDevice));
  print("to_host", cudaMemcpy(target.data(), device, kBytes, cudaMemcpyDefault));
  printf("same %d\n", source == target);
  print("inside", cudaMemcpyAsync(other, device, 4096, cudaMemcpyDeviceToDevice));
  print("inside_unknown", cudaMemcpyAsync(static_cast<char*>(other) + (1 << 30), device, 4096,
                                          cudaMemcpyDeviceToDevice));
  std::vector<char> copy(kBytes);
  print("host", cudaMemcpy(copy.data(), source.data(), kBytes, cudaMemcpyHostToHost));
  printf("same %d\n", source == copy);
  print("wrong_way", cudaMemcpy(target.data(), device, 4, cudaMemcpyHostToDevice));
  print("no_way", cudaMemcpy(target.data(), device, 4, static_cast<cudaMemcpyKind>(9)));
  print("nothing", cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
  return 0;
}

int scenario_copy_rows() {
  constexpr size_t kWidth = 1000, kHeight = 9000, kHostPitch = 1024, kDevicePitch = 1536;
  std::vector<char> source(kHostPitch * kHeight), target(kHostPitch * kHeight, 'x');
  for (size_t at = 0; at < source.size(); ++at) source[at] = static_cast<char>(at * 13 + at / 999);
  void* device;
  cudaMalloc(&device, kDevicePitch * kHeight);
  print("to_device", cudaMemcpy2D(device, kDevicePitch, source.data(), kHostPitch, kWidth, kHeight,
                                  cudaMemcpyHostToDevice));
  print("to_host", cudaMemcpy2D(target.data(), kHostPitch, device, kDevicePitch, kWidth, kHeight,
                                cudaMemcpyDeviceToHost));
  bool same = true, untouched = true;
  for (size_t row = 0; row < kHeight; ++row) {
    const char* from = &source[row * kHostPitch];
    const char* to = &target[row * kHostPitch];
    same = same && memcmp(from, to, kWidth) == 0;
    for (size_t at = kWidth; at < kHostPitch; ++at) untouched = untouched && to[at] == 'x';
  }
  printf("same %d\nuntouched %d\n", same, untouched);
  print("narrow_pitch",
        cudaMemcpy2D(device, 10, source.data(), kHostPitch, kWidth, 2, cudaMemcpyHostToDevice));
  return 0;
}

int scenario_handles() {
  auto* garbage = reinterpret_cast<void*>(uintptr_t{0x1234});
  auto stream = static_cast<cudaStream_t>(garbage);
  auto event = static_cast<cudaEvent_t>(garbage);
  print("stream_sync", cudaStreamSynchronize(stream));
  print("stream_destroy_null", cudaStreamDestroy(nullptr));
  print("event_query", cudaEventQuery(event));
  cudaStream_t real;
  cudaStreamCreate(&real);
  print("destroy", cudaStreamDestroy(real));
  print("destroy_again", cudaStreamDestroy(real));
  print("sync_stale", cudaStreamSynchronize(real));
  print("launch", cudaLaunchKernel(garbage, dim3(1), dim3(1), nullptr, 0, nullptr));
  print("device", cudaSetDevice(17));
  print("last", cudaGetLastError());
  print("last_again", cudaGetLastError());
  cudaEvent_t never;
  cudaEventCreate(&never);
  print("query_unrecorded", cudaEventQuery(never));
  float ms;
  print("elapsed_unrecorded", cudaEventElapsedTime(&ms, never, never));
  print("interprocess_with_timing", cudaEventCreateWithFlags(&never, cudaEventInterprocess));
  print("peer_self", cudaDeviceEnablePeerAccess(0, 0));
  print("peer", cudaDeviceEnablePeerAccess(1, 0));
  print("peer_twice", cudaDeviceEnablePeerAccess(1, 0));
  print("peer_off", cudaDeviceDisablePeerAccess(1));
  print("peer_off_twice", cudaDeviceDisablePeerAccess(1));
  return 0;
}

int scenario_sticky() {
  void* memory = nullptr;
  print("sync", cudaDeviceSynchronize());
  print("malloc", cudaMalloc(&memory, 8));
  print("peek", cudaPeekAtLastError());
  print("last", cudaGetLastError());
  print("last_again", cudaGetLastError());
  int count;
  print("count", cudaGetDeviceCount(&count));
  print("other_device", cudaSetDevice(1));
  print("malloc_there", cudaMalloc(&memory, 8));
  print("back", cudaSetDevice(0));
  return 0;
}

int scenario_many_calls() {
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  for (int at = 0; at < 5; ++at) print("malloc", cudaMalloc(&memory, 8));
  print("stream", cudaStreamCreate(&stream));
  print("launch", cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr));
  print("memcpy", cudaMemcpy(memory, &stream, 8, cudaMemcpyDefault));
  print("last", cudaGetLastError());
  return 0;
}

int scenario_fork() {
  void* memory = nullptr;
  print("before", cudaMalloc(&memory, 8));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    print("child", cudaMalloc(&memory, 8));
    fflush(stdout);
    exit(0);
  }
  waitpid(child, nullptr, 0);
  print("parent", cudaMalloc(&memory, 8));
  return 0;
}

int scenario_pinned() {
  void* memory = nullptr;
  print("alloc", cudaHostAlloc(&memory, 5000, cudaHostAllocMapped));
  if (memory == nullptr) return 1;
  memset(memory, 'p', 5000);
  void* device = nullptr;
  print("device_pointer", cudaHostGetDevicePointer(&device, memory, 0));
  printf("same %d\n", device == memory);
  unsigned flags = 99;
  print("flags", cudaHostGetFlags(&flags, memory));
  printf("flags_are %u\n", flags);
  print("free_wrong", cudaFree(memory));
  print("free", cudaFreeHost(memory));
  print("free_again", cudaFreeHost(memory));
  print("bad_flags", cudaHostAlloc(&memory, 10, 0x100));
  return 0;
}

int scenario_dereference() {
  void* memory = nullptr;
  if (cudaMalloc(&memory, 8) != cudaSuccess) return 1;
  printf("%d\n", *static_cast<volatile int*>(memory));
  return 0;
}

int scenario_output() {
  printf("before\n");
  print("sync", cudaDeviceSynchronize());
  return 0;
}

int scenario_refused() {
  cudaGraph_t graph;
  print("graph", cudaGraphCreate(&graph, 0));
  print("last", cudaGetLastError());
  print("graph", cudaGraphCreate(&graph, 0));
  print("array", cudaFreeArray(nullptr));
  return 0;
}
