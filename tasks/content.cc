#include "tasks/content.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace cb::tasks {

void RandomContent::produce(uint64_t offset, std::span<std::byte> out) const {
  uint64_t word = offset / sizeof(uint64_t);
  size_t skipped = offset % sizeof(uint64_t);
  for (size_t done = 0; done < out.size();) {
    uint64_t value = random_.value(word++);
    size_t bytes = std::min(sizeof(value) - skipped, out.size() - done);
    if (bytes == sizeof(value)) {
      std::memcpy(out.data() + done, &value, sizeof(value));
    } else {
      std::memcpy(out.data() + done, reinterpret_cast<const std::byte*>(&value) + skipped, bytes);
    }
    done += bytes;
    skipped = 0;
  }
}

void ZeroContent::produce(uint64_t, std::span<std::byte> out) const {
  std::fill(out.begin(), out.end(), std::byte{0});
}

void StoredContent::produce(uint64_t offset, std::span<std::byte> out) const {
  CB_CHECK(offset + out.size() <= bytes_.size(), "read past the end of a stored content");
  std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
}

void PiecesContent::produce(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    uint64_t index = offset / piece_bytes_;
    uint64_t within = offset % piece_bytes_;
    CB_CHECK(index < pieces_.size(), "read past the last piece");
    size_t bytes = std::min<uint64_t>(piece_bytes_ - within, out.size());
    pieces_[index].content->produce(pieces_[index].offset + within, out.first(bytes));
    offset += bytes;
    out = out.subspan(bytes);
  }
}

std::shared_ptr<const Content> part_of(std::shared_ptr<const Content> content, uint64_t offset,
                                       uint64_t bytes) {
  return std::make_shared<PiecesContent>(
      std::vector<PiecesContent::Piece>{{std::move(content), offset}}, bytes);
}

}  // namespace cb::tasks
