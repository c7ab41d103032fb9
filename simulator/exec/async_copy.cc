#include "simulator/exec/async_copy.h"

#include <algorithm>
#include <cstring>

#include "simulator/exec/atomic_functions.h"

namespace cb::sim {
namespace {

using ptx::Type;

template <typename F, typename T>
void reduce_each(uint64_t to, const std::byte* from, uint64_t bytes) {
  bool changed = false;
  for (uint64_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T operand;
    std::memcpy(&operand, from + at, sizeof operand);
    update_at<F, T>(to + at, operand, T{0}, changed);
  }
}

template <typename T, typename Number>
ReduceFn integer_reduction(std::string_view operation) {
  if (operation == "add") return reduce_each<AtomicAdd<T>, T>;
  if (operation == "min") return reduce_each<AtomicMin<T, Number>, T>;
  if (operation == "max") return reduce_each<AtomicMax<T, Number>, T>;
  if constexpr (sizeof(T) == 4 && std::is_unsigned_v<Number>) {
    if (operation == "inc") return reduce_each<AtomicIncrement<T>, T>;
    if (operation == "dec") return reduce_each<AtomicDecrement<T>, T>;
  }
  return nullptr;
}

template <typename T>
ReduceFn bit_reduction(std::string_view operation) {
  if (operation == "and") return reduce_each<AtomicAnd<T>, T>;
  if (operation == "or") return reduce_each<AtomicOr<T>, T>;
  if (operation == "xor") return reduce_each<AtomicXor<T>, T>;
  return nullptr;
}

template <typename Half>
ReduceFn half_reduction(std::string_view operation) {
  if (operation == "add") return reduce_each<HalfAdd<Half>, uint16_t>;
  if (operation == "min") return reduce_each<HalfMin<Half>, uint16_t>;
  if (operation == "max") return reduce_each<HalfMax<Half>, uint16_t>;
  return nullptr;
}

void write_fill(const AsyncCopy& copy, uint64_t to, uint32_t bytes) {
  auto* place = reinterpret_cast<std::byte*>(to);
  for (uint32_t i = 0; i < bytes; ++i) place[i] = copy.fill[i % copy.fill.size()];
}

uint64_t moved(uint64_t base, int64_t step, uint32_t rows) {
  return base + static_cast<uint64_t>(step * static_cast<int64_t>(rows));
}

}  // namespace

ReduceFn find_reduction(std::string_view operation, Type type) {
  switch (type) {
    case Type::kU32:
      return integer_reduction<uint32_t, uint32_t>(operation);
    case Type::kS32:
      return integer_reduction<uint32_t, int32_t>(operation);
    case Type::kU64:
      return integer_reduction<uint64_t, uint64_t>(operation);
    case Type::kS64:
      return integer_reduction<uint64_t, int64_t>(operation);
    case Type::kB32:
      return bit_reduction<uint32_t>(operation);
    case Type::kB64:
      return bit_reduction<uint64_t>(operation);
    case Type::kF16:
      return half_reduction<HalfF16>(operation);
    case Type::kBf16:
      return half_reduction<HalfBf16>(operation);
    case Type::kF32:
      return operation == "add" ? reduce_each<AtomicAddF32<true>, uint32_t> : nullptr;
    case Type::kF64:
      return operation == "add" ? reduce_each<AtomicAddF64, uint64_t> : nullptr;
    default:
      return nullptr;
  }
}

uint64_t AsyncCopy::total_bytes() const {
  uint64_t total = 0;
  for (const CopyPiece& piece : pieces) total += piece.total();
  return total;
}

void AsyncCopy::add_block(Block* block) {
  if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) blocks.push_back(block);
}

void gather_source(AsyncCopy& copy) {
  copy.data.resize(copy.total_bytes());
  std::byte* to = copy.data.data();
  for (const CopyPiece& piece : copy.pieces) {
    for (uint32_t row = 0; row < piece.rows; ++row, to += piece.bytes) {
      if (piece.source == 0) {
        write_fill(copy, reinterpret_cast<uint64_t>(to), piece.bytes);
        continue;
      }
      uint64_t from = moved(piece.source, piece.source_step, row);
      std::memcpy(to, reinterpret_cast<const void*>(from), piece.bytes);
    }
  }
}

void write_destination(const AsyncCopy& copy) {
  const std::byte* next = copy.data.data();
  bool has_data = !copy.data.empty();
  for (const CopyPiece& piece : copy.pieces) {
    for (uint32_t row = 0; row < piece.rows; ++row) {
      uint64_t to = moved(piece.destination, piece.destination_step, row);
      const auto* from =
          reinterpret_cast<const std::byte*>(moved(piece.source, piece.source_step, row));
      if (has_data) {
        from = next;
        next += piece.bytes;
      } else if (piece.source == 0) {
        write_fill(copy, to, piece.bytes);
        continue;
      }
      if (copy.reduce != nullptr) {
        copy.reduce(to, from, piece.bytes);
      } else {
        std::memmove(reinterpret_cast<void*>(to), from, piece.bytes);
      }
    }
  }
}

}  // namespace cb::sim
