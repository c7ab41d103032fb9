#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace cb {

/// Owns a file descriptor. -1 means none; closing never fails loudly.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// A close-on-exec memfd of `bytes`, sealed so that nobody can shrink or grow it: a reader that
/// maps it cannot be killed by SIGBUS. Throws Error(kSystem).
UniqueFd sealed_memfd(const std::string& name, size_t bytes);

/// A shared mapping of a descriptor; unmapped when destroyed.
class SharedMapping {
 public:
  SharedMapping() = default;
  /// Maps `bytes` of `fd` readable and writable. Throws Error(kSystem).
  SharedMapping(int fd, size_t bytes);
  SharedMapping(SharedMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace cb
