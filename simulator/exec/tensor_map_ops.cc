// Instructions that change tensor maps: tensormap.replace, and tensormap.cp_fenceproxy, which
// publishes a map that was changed in shared memory. Reading maps is here too.

#include <fmt/format.h>

#include <cstring>

#include "simulator/exec/engine_port.h"
#include "simulator/exec/kernel_run.h"
#include "simulator/exec/memory_ops_query.h"
#include "simulator/exec/tensor_map_access.h"

namespace cb::sim {
namespace {

using ptx::Type;

/// A field, as MicroOp::immediate names it together with its dimension.
enum class Field : uint8_t {
  kAddress,
  kRank,
  kBox,
  kSize,
  kStride,
  kElementStride,
  kType,
  kInterleave,
  kSwizzle,
  kFill,
};

struct FieldInfo {
  std::string_view name;
  Field field;
  Type type;
  uint32_t dimensions;  ///< 0: the field is one value
  bool is_constant;     ///< its new value is an immediate
};
constexpr FieldInfo kFields[] = {
    {"global_address", Field::kAddress, Type::kB64, 0, false},
    {"rank", Field::kRank, Type::kB32, 0, false},
    {"box_dim", Field::kBox, Type::kB32, 5, false},
    {"global_dim", Field::kSize, Type::kB32, 5, false},
    {"global_stride", Field::kStride, Type::kB64, 4, false},
    {"element_stride", Field::kElementStride, Type::kB32, 5, false},
    {"elemtype", Field::kType, Type::kB32, 0, true},
    {"interleave_layout", Field::kInterleave, Type::kB32, 0, true},
    {"swizzle_mode", Field::kSwizzle, Type::kB32, 0, true},
    {"fill_mode", Field::kFill, Type::kB32, 0, true},
};

/// PTX numbers the types that convert differently from the host's API.
constexpr TensorType kTypes[] = {
    TensorType::kU8,      TensorType::kU16, TensorType::kU32,  TensorType::kS32,
    TensorType::kU64,     TensorType::kS64, TensorType::kF16,  TensorType::kF32,
    TensorType::kF32Ftz,  TensorType::kF64, TensorType::kBf16, TensorType::kTf32,
    TensorType::kTf32Ftz,
};

/// What a new value of a field may be at most; the map is looked at as a whole when it is used.
uint64_t limit_of(Field field) {
  switch (field) {
    case Field::kAddress:
    case Field::kStride:
      return UINT64_MAX;
    case Field::kSize:
      return UINT32_MAX;
    case Field::kRank:
      return TensorMap::kMaxRank - 1;
    case Field::kBox:
      return TensorMap::kMaxBox;
    case Field::kElementStride:
      return TensorMap::kMaxElementStride;
    case Field::kType:
      return std::size(kTypes) - 1;
    case Field::kInterleave:
      return 2;
    case Field::kSwizzle:
      return static_cast<uint64_t>(TensorSwizzle::k128B);
    case Field::kFill:
      return 1;
  }
  return 0;
}

void set_field(TensorMap& map, Field field, uint32_t dimension, uint64_t value) {
  switch (field) {
    case Field::kAddress:
      map.address = value;
      break;
    case Field::kRank:
      map.rank = static_cast<uint8_t>(value + 1);
      break;
    case Field::kBox:
      map.box[dimension] = static_cast<uint16_t>(value);
      break;
    case Field::kSize:
      map.last[dimension] = static_cast<uint32_t>(value - 1);
      break;
    case Field::kStride:
      map.strides[dimension] = value;
      break;
    case Field::kElementStride:
      map.element_strides[dimension] = static_cast<uint8_t>(value);
      break;
    case Field::kType:
      map.type = kTypes[value];
      break;
    case Field::kInterleave:
      map.interleave = static_cast<uint8_t>(value);
      break;
    case Field::kSwizzle:
      map.swizzle = static_cast<TensorSwizzle>(value);
      break;
    case Field::kFill:
      map.fills_nan = static_cast<uint8_t>(value);
      break;
  }
}

constexpr uint64_t kInShared = 1 << 16;

/// Charges a read-modify-write of a line.
void describe_map(Context& c, uint64_t address, const Allocation* allocation) {
  if (!c.timed) return;
  MemoryAccess& access = c.access;
  access = {};
  access.kind = MemoryAccess::Kind::kReduction;
  access.bytes = sizeof(TensorMap);
  access.sectors = sizeof(TensorMap) / 32;
  access.address = address;
  access.end = address + sizeof(TensorMap);
  if (allocation == nullptr) {
    access.kind = MemoryAccess::Kind::kAtomic;
    access.target = MemoryAccess::Target::kShared;
    access.conflicts = 1;
    return;
  }
  access.device = static_cast<uint16_t>(allocation->device);
  if (allocation->on_host()) access.target = MemoryAccess::Target::kPinned;
}

bool replace_in_lane(Context& c, const MicroOp* op, int lane, uint64_t address, uint64_t value) {
  AsyncRange range{.what = "the tensor map",
                   .bytes = sizeof(TensorMap),
                   .align = kTensorMapAlignment,
                   .write = true};
  const Allocation* allocation = nullptr;
  bool in_shared = (op->immediate & kInShared) != 0;
  bool is_own = address >= c.shared_base && address - c.shared_base < c.shared_bytes;
  if (in_shared || is_own) {
    auto window = in_shared ? SharedWindow::kOwn : SharedWindow::kGeneric;
    auto place = locate_shared(c, op, lane, address, window, range);
    if (!place) return false;
    address = place->address;
  } else {
    allocation = locate_global(c, op, lane, address, range);
    if (allocation == nullptr) return false;
  }
  auto field = static_cast<Field>(op->immediate & 0xff);
  TensorMap map;
  std::memcpy(&map, reinterpret_cast<const void*>(address), sizeof map);
  std::string problem;
  if (map.magic != TensorMap::kMagic) {
    problem = problem_of_map(map);
  } else if (value > limit_of(field)) {
    problem = fmt::format("{} where at most {} is allowed", value, limit_of(field));
  }
  if (!problem.empty()) {
    fault(c, op, Finding::Kind::kIllegalInstruction, lane,
          fmt::format("tensor map at {:#x}: {}", address, problem), address, sizeof map, true);
    return false;
  }
  set_field(map, field, static_cast<uint32_t>(op->immediate >> 8 & 0xff), value);
  std::memcpy(reinterpret_cast<void*>(address), &map, sizeof map);
  note_write(c, address, address + sizeof map);
  describe_map(c, address, allocation);
  return true;
}

template <typename T>
const MicroOp* replace_op(Context& c, const MicroOp* op) {
  ListedAddress address(c, op, 0, 0);
  ListedValue<T> value(c, op, kAddressEntries);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    if (!replace_in_lane(c, op, lane, address.of(lane), value.of(lane))) return nullptr;
  }
  return op + 1;
}

/// Takes the field, and its dimension into the spec; nullptr when there is none.
const FieldInfo* take_field(OpQuery& query, OpSpec& spec) {
  for (const FieldInfo& info : kFields) {
    if (!query.take(info.name)) continue;
    spec.immediate = static_cast<uint64_t>(info.field);
    if (info.dimensions > 0) {
      if (!query.is(1, ptx::Operand::Kind::kImmediate)) return nullptr;
      if (query.operand(1).bits >= info.dimensions) return nullptr;
      spec.immediate |= query.operand(1).bits << 8;
    }
    return &info;
  }
  return nullptr;
}

std::optional<Result<OpSpec>> find_replace(OpQuery& query) {
  OpSpec spec;
  bool known = query.take("tile");
  const FieldInfo* info = take_field(query, spec);
  if (query.take("shared::cta")) {
    spec.immediate |= kInShared;
  } else {
    query.take("global");
  }
  known &= query.take("b1024") && info != nullptr && query.take(ptx::name_of(info->type));
  if (!known) return query.finish(std::move(spec), query.num_operands());
  spec.fn = info->type == Type::kB64 ? replace_op<uint64_t> : replace_op<uint32_t>;
  spec.flags = kOpOrdered | kOpMemory | kOpSideEffect | kOpListSource;
  size_t value = info->dimensions > 0 ? 2 : 1;
  add_listed_address(query, spec, 0, 0);
  add_listed(spec, value, info->type, false);
  return query.finish(std::move(spec), value + 1);
}

template <Scope scope>
const MicroOp* publish_op(Context& c, const MicroOp* op) {
  int lane = std::countr_zero(c.mask);
  ListedAddress to(c, op, 0, 0);
  ListedAddress from(c, op, kAddressEntries, 1);
  AsyncRange source{.what = "the source",
                    .bytes = sizeof(TensorMap),
                    .align = kTensorMapAlignment,
                    .write = false};
  AsyncRange destination = source;
  destination.what = "the destination";
  destination.write = true;
  auto place = locate_shared(c, op, lane, from.of(lane), SharedWindow::kOwn, source);
  if (!place) return nullptr;
  if (locate_global(c, op, lane, to.of(lane), destination) == nullptr) return nullptr;
  // The lanes of the warp execute it together, with the same operands.
  std::memcpy(reinterpret_cast<void*>(to.of(lane)), reinterpret_cast<const void*>(place->address),
              sizeof(TensorMap));
  note_write(c, to.of(lane), to.of(lane) + sizeof(TensorMap));
  fence(c, scope);
  return op + 1;
}

std::optional<Result<OpSpec>> find_publish(OpQuery& query) {
  bool known = query.take("global") && query.take("shared::cta") &&
               query.take("tensormap::generic") && query.take("release");
  constexpr OpFn kHandlers[] = {publish_op<Scope::kBlock>, publish_op<Scope::kCluster>,
                                publish_op<Scope::kDevice>, publish_op<Scope::kSystem>};
  int scope = query.take_one({"cta", "cluster", "gpu", "sys"});
  known &= query.take("sync") && query.take("aligned");
  known &=
      query.is(2, ptx::Operand::Kind::kImmediate) && query.operand(2).bits == sizeof(TensorMap);
  OpSpec spec;
  if (known && scope >= 0) spec.fn = kHandlers[scope];
  spec.flags = kOpOrdered | kOpSideEffect | kOpListSource | kOpRelease;
  add_listed_address(query, spec, 0, 0);
  add_listed_address(query, spec, 1, 1);
  return query.finish(std::move(spec), 3);
}

std::optional<Result<OpSpec>> find_tensor_map_op(OpQuery& query) {
  return query.take("replace")         ? find_replace(query)
         : query.take("cp_fenceproxy") ? find_publish(query)
                                       : query.finish({}, query.num_operands());
}

constexpr OpEntry kEntries[] = {{"tensormap", find_tensor_map_op}};

}  // namespace

std::span<const OpEntry> tensor_map_entries() { return kEntries; }

std::optional<TensorMap> read_tensor_map(Context& c, const MicroOp* op, int lane,
                                         uint64_t address) {
  AsyncRange range{
      .what = "the tensor map", .bytes = sizeof(TensorMap), .align = kTensorMapAlignment};
  uint64_t parameters = c.run->param_base;
  bool is_parameter = address >= parameters && c.run->param_bytes >= sizeof(TensorMap) &&
                      address - parameters <= c.run->param_bytes - sizeof(TensorMap) &&
                      address % kTensorMapAlignment == 0;
  if (!is_parameter && locate_global(c, op, lane, address, range) == nullptr) return std::nullopt;
  TensorMap map;
  std::memcpy(&map, reinterpret_cast<const void*>(address), sizeof map);
  auto kind = Finding::Kind::kIllegalInstruction;
  const char* problem = problem_of_map(map);
  if (problem == nullptr && has_wide_atom(map.swizzle)) problem = "its swizzle needs sm_100";
  if (problem == nullptr && map.address == 0) problem = "its global address is null";
  if (problem == nullptr && (map.interleave != 0 || converts(map.type))) {
    kind = Finding::Kind::kUnsupported;
    problem = "interleaved layouts and types that convert are not supported";
  }
  if (problem == nullptr) return map;
  fault(c, op, kind, lane, fmt::format("tensor map at {:#x}: {}", address, problem), address,
        sizeof map);
  return std::nullopt;
}

}  // namespace cb::sim
