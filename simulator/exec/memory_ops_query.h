#pragma once

// The modifiers that memory instructions share, and their data operands.

#include "simulator/exec/memory_ops_address.h"
#include "simulator/exec/op_query.h"

namespace cb::sim {

enum class MemoryOrder : uint8_t {
  kWeak,
  kVolatile,
  kRelaxed,
  kAcquire,
  kRelease,
  kAcquireRelease,
};
inline bool acquires(MemoryOrder order) {
  return order == MemoryOrder::kAcquire || order == MemoryOrder::kAcquireRelease;
}
inline bool releases(MemoryOrder order) {
  return order == MemoryOrder::kRelease || order == MemoryOrder::kAcquireRelease;
}

/// Takes .weak, .volatile, or .relaxed and the like with their scope; `fallback` where there is
/// none. An atomic's scope needs no ordering before it.
Result<MemoryOrder> take_order(OpQuery& query, MemoryOrder fallback);

/// Takes the state space of an access whose address is operand `address`; generic without one.
Result<AccessSpace> take_space(OpQuery& query, size_t address);
/// Whether an access to generic memory is one to .shared::cluster: kClusterWindow, else 0.
uint8_t window_of(const OpQuery& query);

/// Takes cache operators, eviction priorities and prefetch sizes, none of which changes what an
/// access does. True if a cache policy is an operand.
bool take_cache_hints(OpQuery& query, bool is_load);

/// Takes .v2, .v4 or .v8.
unsigned take_elements(OpQuery& query);

/// Takes the type, which comes last; kNone when there is none left.
ptx::Type take_data_type(OpQuery& query);

/// The width of the registers of data operand `index`, which may exceed that of an integer type.
Result<unsigned> data_width(const OpQuery& query, size_t index, ptx::Type type, unsigned elements);

/// Adds data operand `index` of `elements` registers: one in kD or kB, several in the list.
void add_data(OpSpec& spec, size_t index, ptx::Type type, unsigned elements, bool is_destination);

/// use(memory tag, register tag) with unsigned types of these widths, the memory's signed if
/// `is_signed` and narrower than the register; nullptr for other widths.
template <typename Use>
OpFn for_access(unsigned memory_bytes, unsigned register_bytes, bool is_signed, Use use) {
  auto with_register = [&](auto memory) -> OpFn {
    switch (register_bytes) {
      case 1:
        return use(memory, TypeTag<uint8_t>{});
      case 2:
        return use(memory, TypeTag<uint16_t>{});
      case 4:
        return use(memory, TypeTag<uint32_t>{});
      case 8:
        return use(memory, TypeTag<uint64_t>{});
      default:
        return nullptr;
    }
  };
  if (register_bytes < memory_bytes) return nullptr;
  bool extends = is_signed && register_bytes > memory_bytes;
  switch (memory_bytes) {
    case 1:
      return extends ? with_register(TypeTag<int8_t>{}) : with_register(TypeTag<uint8_t>{});
    case 2:
      return extends ? with_register(TypeTag<int16_t>{}) : with_register(TypeTag<uint16_t>{});
    case 4:
      return extends ? with_register(TypeTag<int32_t>{}) : with_register(TypeTag<uint32_t>{});
    case 8:
      return with_register(TypeTag<uint64_t>{});
    default:
      return nullptr;
  }
}

/// use(tag) with the space as a constant.
template <AccessSpace space>
struct SpaceTag {
  static constexpr AccessSpace kSpace = space;
};
template <typename Use>
OpFn for_space(AccessSpace space, Use use) {
  switch (space) {
    case AccessSpace::kGeneric:
      return use(SpaceTag<AccessSpace::kGeneric>{});
    case AccessSpace::kParameter:
      return use(SpaceTag<AccessSpace::kParameter>{});
    case AccessSpace::kShared:
      return use(SpaceTag<AccessSpace::kShared>{});
    case AccessSpace::kLocal:
      return use(SpaceTag<AccessSpace::kLocal>{});
  }
  return nullptr;
}

}  // namespace cb::sim
