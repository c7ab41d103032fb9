// The host's clocks agree with the device's work and with each other.

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "check.h"

__global__ void spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

int main() {
  auto start = Clock::now();
  usleep(5000);
  EXPECT(ms_since(start) >= 5);
  start = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  EXPECT(ms_since(start) >= 3);
  start = Clock::now();
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 4'000'000;
  if (until.tv_nsec >= 1'000'000'000) {
    until.tv_nsec -= 1'000'000'000;
    until.tv_sec += 1;
  }
  EXPECT_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr), 0);
  EXPECT(ms_since(start) >= 3.9);

  std::mutex mutex;
  std::condition_variable condition;
  {
    std::unique_lock<std::mutex> lock(mutex);
    start = Clock::now();
    auto status = condition.wait_for(lock, std::chrono::milliseconds(2));
    EXPECT(status == std::cv_status::timeout || ms_since(start) < 2);
    EXPECT(ms_since(start) > 0);
  }

  // While the host sleeps the device works: a sleep longer than the kernel finds it finished.
  int clock_khz = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
  spin<<<1, 1>>>(1);
  REQUIRE_OK(cudaDeviceSynchronize());
  start = Clock::now();
  spin<<<1, 1>>>(2LL * clock_khz);
  EXPECT_ERROR(cudaStreamQuery(0), cudaErrorNotReady);
  usleep(50'000);
  EXPECT_OK(cudaStreamQuery(0));
  start = Clock::now();
  spin<<<1, 1>>>(2LL * clock_khz);
  EXPECT_OK(cudaDeviceSynchronize());
  double waited = ms_since(start);
  EXPECT(waited > 1.5);
  // Polling with yields gets there too.
  spin<<<1, 1>>>(clock_khz / 10);
  while (cudaStreamQuery(0) == cudaErrorNotReady) std::this_thread::yield();
  EXPECT_OK(cudaDeviceSynchronize());
  return failures();
}
