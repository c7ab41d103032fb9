#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tasks/family.h"

/// The contents that families build inputs, expectations and poison from.
namespace cb::tasks {

/// Full-entropy bytes: every bit pattern of every type occurs, NaN and -0.0 included.
class RandomContent final : public Content {
 public:
  explicit RandomContent(uint64_t seed) : random_(seed) {}
  void produce(uint64_t offset, std::span<std::byte> out) const override;

 private:
  CounterRandom random_;
};

class ZeroContent final : public Content {
 public:
  void produce(uint64_t offset, std::span<std::byte> out) const override;
};

/// Bytes that are kept: for small contents that have no closed form.
class StoredContent final : public Content {
 public:
  explicit StoredContent(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  void produce(uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::vector<std::byte> bytes_;
};

/// Pieces of one size after another, each cut out of another content.
class PiecesContent final : public Content {
 public:
  struct Piece {
    std::shared_ptr<const Content> content;
    uint64_t offset = 0;  ///< where in `content` the piece starts
  };
  PiecesContent(std::vector<Piece> pieces, uint64_t piece_bytes)
      : pieces_(std::move(pieces)), piece_bytes_(piece_bytes) {}
  void produce(uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::vector<Piece> pieces_;
  uint64_t piece_bytes_;
};

/// `bytes` of `content` from `offset` on.
std::shared_ptr<const Content> part_of(std::shared_ptr<const Content> content, uint64_t offset,
                                       uint64_t bytes);

}  // namespace cb::tasks
