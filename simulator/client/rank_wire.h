#pragma once

// The messages between RankClient and commbench-simd. Both sides are trusted; sizes are checked all
// the same. A request is one message, RankRequest and `payload_bytes` bytes; every request gets one
// RankReply, events come in between. Bulk bytes go through memory that the client made and sent
// along with its first request.

#include <cstddef>
#include <cstdint>

namespace cb::sim {

inline constexpr size_t kRankBulkBytes = size_t{4} << 20;
inline constexpr size_t kRankPayloadBytes = size_t{32} << 10;

enum class RankOp : uint32_t {
  kInvalid,
  kHello,           ///< a0 rank; the descriptor of the bulk memory comes along
  kHostConnection,  ///< the reply brings two descriptors
  kAllocate,        ///< a0 bytes, a1 1: for all ranks; payload: label. r0 address
  kShare,           ///< collective. Payload: a byte per buffer, 1 for a multicast address.
                    ///< Bulk: per buffer the addresses of all ranks and the multicast address;
                    ///< r0 number of buffers
  kReleaseBuffers,
  kReleaseAll,
  kWrite,      ///< a0 address, a1 bytes in bulk
  kRead,       ///< a0 address, a1 bytes, delivered in bulk
  kFill,       ///< a0 address, a1 bytes, a2 seed, a3 skip_bytes
  kCheckFill,  ///< as kFill: r0 1 if a byte differs, r1 its offset
  kPublish,    ///< a0 address, a1 bytes in bulk: part of the next kGo
  kGo,         ///< collective. Bulk: GoHeader, then WireFill[], WireRange[], WireFill[]
  kSnapshot,   ///< a0 index, a1 offset, a2 bytes, delivered in bulk
  kSettle,     ///< collective. a0 ps. Payload of the reply: WireStep, then the finding's text
  kReport,     ///< a0 offset, 0 makes a new report. r0 bytes in all, r1 bytes in bulk
};

struct RankRequest {
  RankOp op = RankOp::kInvalid;
  uint32_t payload_bytes = 0;
  uint64_t sequence = 0;
  uint64_t args[6] = {};
};

struct RankReply {
  enum class Kind : uint32_t { kReply, kRefused, kEvent };
  Kind kind = Kind::kReply;
  uint32_t payload_bytes = 0;  ///< kRefused: why; kEvent: the host's error text
  uint64_t sequence = 0;
  uint64_t results[4] = {};  ///< kEvent: HostEvent::Kind, status, time in ps
};

struct WireRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
};
struct WireFill {
  WireRange range;
  uint64_t seed = 0;
  uint64_t skip_bytes = 0;
};
struct GoHeader {
  uint64_t phase = 0;
  uint64_t skew_ps = 0;
  uint64_t pace = 1;
  uint64_t virtual_limit_ps = 0;
  uint64_t num_publish_fills = 0;
  uint64_t num_snapshot = 0;
  uint64_t num_overwrite = 0;
};
struct WireStep {
  uint64_t go_ps = 0;
  uint64_t start_ps = 0;
  uint64_t returned_ps = 0;
  uint64_t idle_ps = 0;
  uint64_t late_work = 0;
  uint64_t host_bytes = 0;
};

}  // namespace cb::sim
