#include "base/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/hash.h"

namespace cb {
namespace {

constexpr size_t kKeyBytes = 32;

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

RunKey RunKey::random() {
  std::string bytes(kKeyBytes, '\0');
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw system_error("getrandom");
  }
  return RunKey(std::move(bytes));
}

RunKey RunKey::from_hex(std::string_view text) {
  std::string bytes;
  bool valid = text.size() == 2 * kKeyBytes;
  for (size_t i = 0; valid && i < text.size(); i += 2) {
    int high = digit_value(text[i]);
    int low = digit_value(text[i + 1]);
    valid = high >= 0 && low >= 0;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  if (!valid) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("run key \"{}\": expected 64 hexadecimal digits; `openssl rand -hex 32` "
                    "makes one",
                    text));
  }
  return RunKey(std::move(bytes));
}

std::string RunKey::hex() const {
  std::string text;
  for (unsigned char byte : bytes_) text += fmt::format("{:02x}", byte);
  return text;
}

RunKey RunKey::derive(std::string_view purpose) const {
  Sha256Digest digest = hmac_sha256(bytes_, purpose);
  return RunKey(std::string(digest.begin(), digest.end()));
}

uint64_t RunKey::seed(std::string_view purpose) const {
  Sha256Digest digest = hmac_sha256(bytes_, purpose);
  uint64_t seed = 0;
  for (int i = 7; i >= 0; --i) seed = seed << 8 | digest[static_cast<size_t>(i)];
  return seed;
}

}  // namespace cb
