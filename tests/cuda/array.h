#pragma once

// An array that the host fills or reads and the device works on, and pseudo-random bits to fill it
// with, the same on each machine.

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

template <typename T>
class Array {
 public:
  explicit Array(size_t count) : host(count) {
    REQUIRE_OK(cudaMalloc(&device, count * sizeof(T)));
    REQUIRE_OK(cudaMemset(device, 0, count * sizeof(T)));
  }
  ~Array() { cudaFree(device); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  void to_device() {
    REQUIRE_OK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  void to_host() {
    REQUIRE_OK(cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
  }

  std::vector<T> host;
  T* device = nullptr;
};

class Random {
 public:
  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t x = state_;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }
  /// Bits with many zeros or ones at the ends, or an edge case.
  uint64_t integer() {
    uint64_t kind = bits() % 8, value = bits();
    if (kind == 0) return value % 3 - 1;
    if (kind == 1) return uint64_t{1} << value % 64;
    if (kind == 2) return (uint64_t{1} << value % 64) - 1;
    return kind < 5 ? value >> bits() % 64 : value;
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_ = 1;
};

template <typename To, typename From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "a pattern of the same size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
