#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cb {

/// A counter-based generator: value(i) depends on the seed and `i` alone, so that an input of any
/// size can be produced, and an oracle stream it, element by element in any order.
/// The mixing function is SplitMix64 (Steele, Lea, Flood 2014). It is a bijection, so a reader of
/// the stream can compute its seed: give every (rank, step, purpose) a seed of its own.
class CounterRandom {
 public:
  explicit CounterRandom(uint64_t seed) : seed_(seed) {}

  uint64_t value(uint64_t index) const {
    uint64_t x = seed_ + (index + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }

  /// Uniform in [0, bound), bound >= 1, by multiplication (Lemire 2016); the bias is below 2^-32
  /// for bounds below 2^32.
  uint64_t below(uint64_t index, uint64_t bound) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(value(index)) * bound) >> 64);
  }

 private:
  uint64_t seed_;
};

/// The secret of a run from which every hidden choice is derived. 32 bytes.
class RunKey {
 public:
  /// From the operating system's generator. Throws Error(kSystem).
  static RunKey random();
  /// From 64 hexadecimal digits, as `--run-key` takes them. Throws Error(kUsage).
  static RunKey from_hex(std::string_view text);

  std::string hex() const;

  /// A seed for one purpose: the first 8 bytes, little-endian, of
  /// HMAC-SHA256(key, purpose), where `purpose` names task hash, case, step and use.
  uint64_t seed(std::string_view purpose) const;
  /// A key for one part of a run: HMAC-SHA256(key, purpose).
  RunKey derive(std::string_view purpose) const;

 private:
  explicit RunKey(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

}  // namespace cb
