#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cb {

using Sha256Digest = std::array<uint8_t, 32>;

/// SHA-256 (FIPS 180-4): the identity of everything that is stored.
Sha256Digest sha256(std::string_view data);

/// HMAC-SHA256 (RFC 2104): how every hidden choice is derived from the run key.
Sha256Digest hmac_sha256(std::string_view key, std::string_view message);

/// Lower-case hexadecimal.
std::string hex(const Sha256Digest& digest);
std::string sha256_hex(std::string_view data);

}  // namespace cb
