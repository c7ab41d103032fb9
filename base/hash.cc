#include "base/hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace cb {

Sha256Digest sha256(std::string_view data) {
  Sha256Digest digest;
  unsigned length = 0;
  CB_CHECK(EVP_Digest(data.data(), data.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1,
           "OpenSSL has no SHA-256");
  return digest;
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view message) {
  Sha256Digest digest;
  unsigned length = 0;
  CB_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                digest.data(), &length) != nullptr,
           "OpenSSL has no HMAC-SHA256");
  return digest;
}

std::string hex(const Sha256Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string sha256_hex(std::string_view data) { return hex(sha256(data)); }

}  // namespace cb
