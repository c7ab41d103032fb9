#pragma once

#include <cstdint>

#include "simulator/exec/micro_op.h"
#include "simulator/ptx/module.h"

namespace cb::sim {

/// A C++ type as a value, to be passed to a generic lambda.
template <typename T>
struct TypeTag {
  using type = T;
};

inline bool is_signed(ptx::Type type) {
  return type == ptx::Type::kS8 || type == ptx::Type::kS16 || type == ptx::Type::kS32 ||
         type == ptx::Type::kS64;
}
inline bool is_unsigned(ptx::Type type) {
  return type == ptx::Type::kU8 || type == ptx::Type::kU16 || type == ptx::Type::kU32 ||
         type == ptx::Type::kU64;
}
inline bool is_bits(ptx::Type type) {
  return type == ptx::Type::kB8 || type == ptx::Type::kB16 || type == ptx::Type::kB32 ||
         type == ptx::Type::kB64;
}
inline bool is_integer(ptx::Type type) { return is_signed(type) || is_unsigned(type); }

/// use(tag) with the unsigned type of the width of `type`; nullptr where that is not 2, 4 or 8.
template <typename Use>
OpFn for_width(ptx::Type type, Use use) {
  switch (ptx::bytes_of(type)) {
    case 2:
      return use(TypeTag<uint16_t>{});
    case 4:
      return use(TypeTag<uint32_t>{});
    case 8:
      return use(TypeTag<uint64_t>{});
    default:
      return nullptr;
  }
}

/// use(tag) with the C++ type of a 16-, 32- or 64-bit PTX integer type; nullptr for others.
template <typename Use>
OpFn for_integer(ptx::Type type, Use use) {
  switch (type) {
    case ptx::Type::kU16:
      return use(TypeTag<uint16_t>{});
    case ptx::Type::kU32:
      return use(TypeTag<uint32_t>{});
    case ptx::Type::kU64:
      return use(TypeTag<uint64_t>{});
    case ptx::Type::kS16:
      return use(TypeTag<int16_t>{});
    case ptx::Type::kS32:
      return use(TypeTag<int32_t>{});
    case ptx::Type::kS64:
      return use(TypeTag<int64_t>{});
    default:
      return nullptr;
  }
}

/// The same for signed types only.
template <typename Use>
OpFn for_signed(ptx::Type type, Use use) {
  switch (type) {
    case ptx::Type::kS16:
      return use(TypeTag<int16_t>{});
    case ptx::Type::kS32:
      return use(TypeTag<int32_t>{});
    case ptx::Type::kS64:
      return use(TypeTag<int64_t>{});
    default:
      return nullptr;
  }
}

}  // namespace cb::sim
