// Host threads with work of their own.

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "check.h"

__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }

int main() {
  constexpr int kThreads = 4, kRounds = 10;
  int devices = 0;
  REQUIRE_OK(cudaGetDeviceCount(&devices));
  REQUIRE_OK(cudaSetDevice(devices - 1));
  int results[kThreads][32] = {};
  int first_device[kThreads] = {-1, -1, -1, -1};
  cudaError_t worst[kThreads] = {};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      auto note = [&](cudaError_t error) {
        if (error != cudaSuccess) worst[thread] = error;
      };
      // A thread starts on device 0 and with no error.
      note(cudaGetDevice(&first_device[thread]));
      note(cudaGetLastError());
      note(cudaSetDevice(thread % devices));
      int* values;
      cudaStream_t stream;
      note(cudaMalloc(&values, 32 * sizeof(int)));
      note(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      note(cudaMemsetAsync(values, 0, 32 * sizeof(int), stream));
      for (int round = 0; round < kRounds; ++round) add<<<1, 32, 0, stream>>>(values, thread + 1);
      note(cudaMemcpyAsync(results[thread], values, sizeof results[thread], cudaMemcpyDeviceToHost,
                           stream));
      note(cudaStreamSynchronize(stream));
      note(cudaFree(values));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_OK(worst[thread]);
    EXPECT_EQUAL(first_device[thread], 0);
    EXPECT_EQUAL(results[thread][31], kRounds * (thread + 1));
  }
  int device = -1;
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQUAL(device, devices - 1);

  // The last error belongs to a thread.
  EXPECT_ERROR(cudaSetDevice(-5), cudaErrorInvalidDevice);
  cudaError_t seen = cudaErrorUnknown;
  std::thread([&] { seen = cudaPeekAtLastError(); }).join();
  EXPECT_OK(seen);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);

  // One thread waits for the device while another waits for it.
  std::mutex mutex;
  std::condition_variable condition;
  bool done = false;
  int* values;
  REQUIRE_OK(cudaMalloc(&values, 32 * sizeof(int)));
  std::thread worker([&] {
    cudaSetDevice(devices - 1);
    for (int round = 0; round < 100; ++round) add<<<1, 32>>>(values, 1);
    cudaDeviceSynchronize();
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    condition.notify_all();
  });
  {
    std::unique_lock<std::mutex> lock(mutex);
    condition.wait(lock, [&] { return done; });
  }
  worker.join();
  EXPECT(done);
  return failures();
}
