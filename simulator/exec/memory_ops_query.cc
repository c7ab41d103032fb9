#include "simulator/exec/memory_ops_query.h"

#include <fmt/format.h>

namespace cb::sim {

using ptx::Operand;
using ptx::Type;

Result<MemoryOrder> take_order(OpQuery& query, MemoryOrder fallback) {
  if (query.take("weak")) return MemoryOrder::kWeak;
  if (query.take("volatile")) return MemoryOrder::kVolatile;
  bool mmio = fallback == MemoryOrder::kWeak && query.take("mmio");
  constexpr MemoryOrder kOrders[] = {MemoryOrder::kRelaxed, MemoryOrder::kAcquire,
                                     MemoryOrder::kRelease, MemoryOrder::kAcquireRelease};
  int order = query.take_one({"relaxed", "acquire", "release", "acq_rel"});
  if (mmio && order != 0) return query.refuse(".mmio is .relaxed");
  if (order < 0 && fallback == MemoryOrder::kWeak) return fallback;
  int scope = query.take_one({"cta", "cluster", "gpu", "sys"});
  if (order < 0) return fallback;
  if (scope < 0 && fallback == MemoryOrder::kWeak) return query.refuse("the scope is missing");
  return kOrders[order];
}

Result<AccessSpace> take_space(OpQuery& query, size_t address) {
  if (query.take("shared") || query.take("shared::cta")) return AccessSpace::kShared;
  if (query.take("shared::cluster")) return AccessSpace::kGeneric;
  if (query.take("local")) return AccessSpace::kLocal;
  if (query.take_one({"param", "param::entry", "param::func"}) >= 0) {
    if (!query.is(address, Operand::Kind::kMemory)) return AccessSpace::kParameter;
    const Operand& operand = query.operand(address);
    bool of_entry = operand.reg >= 0 ||
                    (operand.symbol == Operand::Symbol::kParameter && query.function().is_entry);
    return of_entry ? AccessSpace::kParameter : AccessSpace::kLocal;
  }
  query.take_one({"global", "const"});
  return AccessSpace::kGeneric;
}

uint8_t window_of(const OpQuery& query) {
  return query.has("shared::cluster") ? kClusterWindow : 0;
}

bool take_cache_hints(OpQuery& query, bool is_load) {
  if (is_load) {
    query.take_one({"ca", "cg", "cs", "lu", "cv"});
  } else {
    query.take_one({"wb", "cg", "cs", "wt"});
  }
  query.take_one({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
                  "L1::no_allocate"});
  query.take_one({"L2::evict_normal", "L2::evict_first", "L2::evict_last"});
  if (is_load) query.take_one({"L2::64B", "L2::128B", "L2::256B"});
  return query.take("L2::cache_hint");
}

unsigned take_elements(OpQuery& query) {
  constexpr unsigned kElements[] = {2, 4, 8};
  int index = query.take_one({"v2", "v4", "v8"});
  return index < 0 ? 1 : kElements[index];
}

Type take_data_type(OpQuery& query) {
  Type type = query.last_type();
  if (type != Type::kNone) query.take(ptx::name_of(type));
  return type;
}

Result<unsigned> data_width(const OpQuery& query, size_t index, Type type, unsigned elements) {
  unsigned bytes = ptx::bytes_of(type);
  if (index >= query.num_operands()) return query.refuse("too few operands");
  const Operand& data = query.operand(index);
  bool is_list = data.kind == Operand::Kind::kVector;
  if (is_list != (elements > 1) || (is_list && data.elements.size() != elements)) {
    return query.refuse(
        fmt::format("operand {} must be {}", index + 1,
                    elements == 1 ? "a register" : fmt::format("a list of {}", elements)));
  }
  unsigned width = 0;
  for (unsigned k = 0; k < elements; ++k) {
    const Operand& element = is_list ? data.elements[k] : data;
    unsigned of_register = ptx::bytes_of(query.type_of(element));
    if (of_register == 0) continue;
    if (width != 0 && of_register != width) {
      return query.refuse("registers of different widths in a list");
    }
    width = of_register;
  }
  if (width == 0) width = bytes;
  bool may_be_wider = is_integer(type) || (is_bits(type) && bytes <= 8);
  if (width < bytes || (width > bytes && !may_be_wider) || width > 16) {
    return query.refuse(fmt::format("a register of {} bytes for .{}", width, ptx::name_of(type)));
  }
  if (width == 16 && bytes != 16) {
    return query.refuse("a 128-bit register needs .b128");
  }
  return width;
}

void add_data(OpSpec& spec, size_t index, Type type, unsigned elements, bool is_destination) {
  if (elements == 1) {
    add_plain(spec, index, is_destination ? AluPlace::kD : AluPlace::kB, type, is_destination);
    return;
  }
  for (unsigned k = 0; k < elements; ++k) {
    add_listed(spec, index, type, is_destination, static_cast<int>(k));
  }
}

}  // namespace cb::sim
