#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace cb::ptx {

using Bytes = std::span<const std::byte>;

/// `count` bytes at `offset`, or nothing where they are not all inside.
inline std::optional<Bytes> slice(Bytes bytes, uint64_t offset, uint64_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, count);
}

/// A little-endian value or struct at `offset`, or nothing where it is not all inside.
template <typename T>
std::optional<T> read_at(Bytes bytes, uint64_t offset) {
  std::optional<Bytes> part = slice(bytes, offset, sizeof(T));
  if (!part) return std::nullopt;
  T value;
  std::memcpy(&value, part->data(), sizeof(T));
  return value;
}

/// The characters at `offset` up to a NUL or the end; empty where `offset` is outside.
inline std::string_view string_at(Bytes bytes, uint64_t offset) {
  if (offset >= bytes.size()) return {};
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + offset,
                        bytes.size() - offset);
  return text.substr(0, text.find('\0'));
}

}  // namespace cb::ptx
