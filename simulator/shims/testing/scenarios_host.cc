// Scenarios of host threads, time and the bootstrap.

#include <cuda_runtime_api.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "simulator/protocol/host_api.h"
#include "simulator/shims/testing/scenarios.h"

namespace {

constexpr auto kLong = std::chrono::hours(5);

long long now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void print(const char* what, cudaError_t error) { printf("%s %d\n", what, error); }

}  // namespace

int scenario_threads() {
  constexpr int kThreads = 4, kCalls = 50;
  cudaError_t errors[kThreads] = {};
  void* addresses[kThreads][kCalls] = {};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      int device = -1;
      cudaGetDevice(&device);
      if (device != 0) errors[thread] = cudaErrorUnknown;
      cudaSetDevice(thread % 2);
      for (auto& address : addresses[thread]) {
        cudaError_t error = cudaMalloc(&address, 100);
        if (error != cudaSuccess) errors[thread] = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (cudaError_t error : errors) print("thread", error);
  int device = -1;
  cudaGetDevice(&device);
  printf("device %d\n", device);
  return 0;
}

int scenario_main_leaves() {
  std::thread([] {
    void* memory = nullptr;
    print("worker", cudaMalloc(&memory, 8));
    fflush(stdout);
  }).detach();
  pthread_exit(nullptr);
}

int scenario_blocked_threads() {
  std::vector<std::thread> threads;
  threads.reserve(3);
  cudaError_t errors[3] = {};
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&errors, thread] { errors[thread] = cudaDeviceSynchronize(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (cudaError_t error : errors) print("sync", error);
  return 0;
}

int scenario_time() {
  long long start = now_ns();
  printf("advances %d\n", now_ns() > start);
  start = now_ns();
  usleep(1500);
  printf("usleep %d\n", static_cast<int>((now_ns() - start) / 1000));
  start = now_ns();
  std::this_thread::sleep_for(std::chrono::seconds(3600));
  printf("sleep_for %d\n", static_cast<int>((now_ns() - start) / 1'000'000'000));
  start = now_ns();
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 100;
  clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr);
  printf("until %d\n", static_cast<int>((now_ns() - start) / 1'000'000'000));
  start = now_ns();
  pollfd nothing = {-1, 0, 0};
  printf("poll %d", poll(&nothing, 1, 20));
  printf(" after %d\n", static_cast<int>((now_ns() - start) / 1'000'000));
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0 || write(pipe_fds[1], "x", 1) != 1) return 1;
  pollfd readable = {pipe_fds[0], POLLIN, 0};
  printf("ready %d\n", poll(&readable, 1, -1));
  printf("year %d\n", static_cast<int>(1970 + time(nullptr) / 31'556'952));
  return 0;
}

int scenario_timed_waits() {
  std::mutex mutex;
  std::condition_variable condition;
  {
    std::unique_lock lock(mutex);
    long long start = now_ns();
    auto status = condition.wait_for(lock, std::chrono::milliseconds(5));
    printf("timeout %d after %d\n", status == std::cv_status::timeout,
           static_cast<int>((now_ns() - start) / 1'000'000));
  }
  bool flag = false;
  std::thread waker([&] {
    std::lock_guard lock(mutex);
    flag = true;
    condition.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    printf("woken %d\n", condition.wait_for(lock, kLong, [&] { return flag; }));
  }
  waker.join();
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  std::thread poster([&] { sem_post(&semaphore); });
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20'000;
  printf("posted %d\n", sem_timedwait(&semaphore, &until));
  poster.join();
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += until.tv_nsec > 500'000'000 ? -1 : 1;
  printf("not_posted %d\n", sem_timedwait(&semaphore, &until));
  std::timed_mutex timed;
  timed.lock();
  bool locked = true;
  std::thread other([&] { locked = timed.try_lock_for(std::chrono::milliseconds(3)); });
  other.join();
  printf("locked %d\n", locked);
  return 0;
}

int scenario_bootstrap() {
  printf("phase %u\n", commbench_sim_control_wait(0, 0, nullptr));
  char gathered[8] = {};
  printf("allgather %d", commbench_sim_allgather("abc", gathered, 4, 2));
  printf(" %s %s\n", gathered, gathered + 4);
  printf("wrong_world %d\n", commbench_sim_allgather("abc", gathered, 4, 3));
  printf("barrier %d\n", commbench_sim_barrier());
  uint64_t addresses[2] = {}, multicast = 0;
  printf("sym_alloc %d", commbench_sim_sym_alloc(1000, 2, addresses, &multicast));
  printf(" %llx %llx %llx\n", static_cast<unsigned long long>(addresses[0]),
         static_cast<unsigned long long>(addresses[1]), static_cast<unsigned long long>(multicast));
  commbench_sim_relax();
  printf("phase %u\n", commbench_sim_control_wait(1, 4, "it broke"));
  return 0;
}
