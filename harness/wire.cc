#include "harness/wire.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/socket.h"

namespace cb::harness {
namespace {

// Half of the smallest socket buffer that Linux gives by default.
constexpr size_t kPieceBytes = 64 << 10;

}  // namespace

bool send_text(int fd, std::string_view text) {
  uint64_t bytes = text.size();
  if (!send_message(fd, std::as_bytes(std::span(&bytes, 1)))) return false;
  while (!text.empty()) {
    std::string_view piece = text.substr(0, kPieceBytes);
    if (!send_message(fd, std::as_bytes(std::span(piece)))) return false;
    text.remove_prefix(piece.size());
  }
  return true;
}

std::optional<std::string> receive_text(int fd, int timeout_ms) {
  auto receive = [&](std::span<std::byte> buffer) {
    std::optional<size_t> got = receive_message(fd, buffer, timeout_ms);
    if (!got) throw Error(ErrorCode::kTimeout, "a part of the harness does not answer");
    return *got;
  };
  uint64_t bytes = 0;
  size_t got = receive(std::as_writable_bytes(std::span(&bytes, 1)));
  if (got == 0) return std::nullopt;
  if (got != sizeof bytes) throw Error(ErrorCode::kRemote, "a message without a size");
  std::string text;
  std::vector<std::byte> piece(kPieceBytes);
  while (text.size() < bytes) {
    got = receive(piece);
    if (got == 0) return std::nullopt;
    text.append(reinterpret_cast<const char*>(piece.data()), got);
  }
  return text;
}

}  // namespace cb::harness
