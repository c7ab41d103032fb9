// Copies, reductions and prefetches of boxes of tensors: cp.async.bulk.tensor and its kin. What a
// box is says tensor_tile.h; here its pieces meet memory, mbarriers and groups.

#include <fmt/format.h>

#include <algorithm>

#include "simulator/exec/engine_port.h"
#include "simulator/exec/kernel_run.h"
#include "simulator/exec/memory_ops_query.h"
#include "simulator/exec/tensor_map_access.h"
#include "simulator/exec/tensor_tile.h"

namespace cb::sim {
namespace {

using ptx::Type;

constexpr uint32_t kSharedAlignment = 128;
constexpr std::string_view kOperations[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

enum class Direction : uint8_t { kLoad, kStore, kReduce, kPrefetch };

/// What the text asks for, as it is in MicroOp::immediate. The list has the map's address, the
/// coordinates, the offsets, the address in shared memory, the mbarrier, the mask of blocks.
struct TensorForm {
  Direction direction = Direction::kLoad;
  bool to_cluster = false;
  bool to_many = false;
  TensorMode mode = TensorMode::kTiled;
  uint8_t rank = 1;
  uint8_t num_offsets = 0;
  uint8_t operation = 0;

  uint64_t packed() const {
    return static_cast<uint64_t>(direction) | uint64_t{to_cluster} << 4 | uint64_t{to_many} << 5 |
           static_cast<uint64_t>(mode) << 6 | uint64_t{rank} << 8 | uint64_t{num_offsets} << 12 |
           uint64_t{operation} << 16;
  }
  static TensorForm unpacked(uint64_t bits) {
    TensorForm form;
    form.direction = static_cast<Direction>(bits & 15);
    form.to_cluster = (bits >> 4 & 1) != 0;
    form.to_many = (bits >> 5 & 1) != 0;
    form.mode = static_cast<TensorMode>(bits >> 6 & 1);
    form.rank = bits >> 8 & 15;
    form.num_offsets = bits >> 12 & 15;
    form.operation = bits >> 16 & 15;
    return form;
  }

  uint32_t shared_entry() const { return kAddressEntries + rank + num_offsets; }
  uint32_t barrier_entry() const { return shared_entry() + kAddressEntries; }
  uint32_t mask_entry() const { return barrier_entry() + kAddressEntries; }
  bool has_shared() const { return direction != Direction::kPrefetch; }
  SharedWindow window() const { return to_cluster ? SharedWindow::kCluster : SharedWindow::kOwn; }
};

/// The type in which a reduction sees elements.
Type element_type(TensorType type, std::string_view operation) {
  bool is_logic = operation == "and" || operation == "or" || operation == "xor";
  switch (type) {
    case TensorType::kU32:
      return is_logic ? Type::kB32 : Type::kU32;
    case TensorType::kS32:
      return is_logic ? Type::kB32 : Type::kS32;
    case TensorType::kU64:
      return is_logic ? Type::kB64 : Type::kU64;
    case TensorType::kS64:
      return is_logic ? Type::kB64 : Type::kS64;
    case TensorType::kF16:
      return Type::kF16;
    case TensorType::kBf16:
      return Type::kBf16;
    case TensorType::kF32:
      return Type::kF32;
    case TensorType::kF64:
      return Type::kF64;
    default:
      return Type::kNone;
  }
}

/// What a lane's registers say.
struct TensorOperands {
  uint64_t map = 0;
  TilePosition position;
  uint64_t shared = 0;
  uint64_t barrier = 0;
  uint32_t mask = 0;
};

/// One lane's copy being put together.
class TensorCopy {
 public:
  TensorCopy(Context& c, const MicroOp* op, int lane, const TensorForm& form)
      : c_(c), op_(op), lane_(lane), form_(form) {}

  /// False after a fault.
  bool start(const TensorOperands& operands) {
    auto map = read_tensor_map(c_, op_, lane_, operands.map);
    if (!map) return false;
    map_ = *map;
    if (!matches(operands)) return false;
    if (!form_.has_shared()) return true;
    AsyncRange range{.what = is_load() ? "the destination" : "the source",
                     .bytes = tile_room(map_),
                     .align = kSharedAlignment,
                     .write = is_load()};
    auto place = locate_shared(c_, op_, lane_, operands.shared, form_.window(), range);
    if (!place) return false;
    pieces_ = tile_pieces(map_, operands.position, place->offset);
    if (!check_global()) return false;
    copy_.fill = tile_fill(map_);
    bool built = is_load() ? load(operands, *place) : store(*place);
    return built && start_copy(c_, op_, uint32_t{1} << lane_, std::move(copy_));
  }

 private:
  bool is_load() const { return form_.direction == Direction::kLoad; }

  bool refuse(const std::string& why) {
    fault(c_, op_, Finding::Kind::kIllegalInstruction, lane_, why);
    return false;
  }

  bool matches(const TensorOperands& operands) {
    if (map_.rank != form_.rank) {
      return refuse(
          fmt::format("the tensor map has rank {}, the instruction {}", map_.rank, form_.rank));
    }
    if (map_.mode != form_.mode) {
      return refuse(fmt::format("the tensor map is {}, the instruction not",
                                map_.mode == TensorMode::kIm2col ? "an im2col one" : "tiled"));
    }
    if (auto problem = problem_of_position(map_, operands.position)) return refuse(*problem);
    if (form_.direction != Direction::kReduce) return true;
    std::string_view operation = kOperations[form_.operation];
    copy_.reduce = find_reduction(operation, element_type(map_.type, operation));
    if (copy_.reduce == nullptr) {
      return refuse(fmt::format("elements of the tensor's type have no .{}", operation));
    }
    return true;
  }

  /// Whether all pieces inside the tensor may be touched.
  bool check_global() {
    const Allocation* allocation = nullptr;
    for (const TilePiece& piece : pieces_) {
      if (piece.global == 0) continue;
      if (allocation != nullptr && piece.global >= allocation->base &&
          piece.global + piece.bytes <= allocation->end()) {
        continue;
      }
      allocation = locate_global(
          c_, op_, lane_, piece.global,
          {.what = "an element of the tensor", .bytes = piece.bytes, .write = !is_load()});
      if (allocation == nullptr) return false;
    }
    return true;
  }

  bool load(const TensorOperands& operands, const SharedPlace& place) {
    auto told = locate_barrier(c_, op_, lane_, operands.barrier, form_.window());
    if (!told) return false;
    if (!form_.to_many) {
      add_target(*place.block, *told->block, told->offset);
    } else {
      for (uint32_t left = operands.mask; left != 0; left &= left - 1) {
        auto rank = static_cast<uint32_t>(std::countr_zero(left));
        auto target = shared_place(*c_.block, mapped_shared_address(0, rank));
        if (!target) {
          return refuse(
              fmt::format("the mask names block {} of the cluster, which it does not "
                          "have or which has ended",
                          rank));
        }
        add_target(*target->block, *target->block, told->offset);
      }
    }
    // All targets of a piece follow each other, so that it is fetched once.
    for (const TilePiece& piece : pieces_) {
      for (const Block* target : targets_) {
        copy_.pieces.push_back({.source = piece.global,
                                .destination = target->shared_base + piece.shared,
                                .bytes = piece.bytes});
      }
    }
    return true;
  }

  void add_target(Block& block, Block& told, uint32_t barrier_offset) {
    targets_.push_back(&block);
    BarrierUpdate update{.complete_bytes = static_cast<uint32_t>(tile_bytes(map_))};
    copy_.signals.push_back({&told, told.shared_base + barrier_offset, update});
    copy_.add_block(&block);
    copy_.add_block(&told);
  }

  bool store(const SharedPlace& place) {
    copy_.group = AsyncCopy::Group::kBulk;
    copy_.add_block(place.block);
    for (const TilePiece& piece : pieces_) {
      if (piece.global == 0) continue;
      copy_.pieces.push_back({.source = place.block->shared_base + piece.shared,
                              .destination = piece.global,
                              .bytes = piece.bytes});
    }
    return true;
  }

  Context& c_;
  const MicroOp* op_;
  const int lane_;
  const TensorForm form_;
  TensorMap map_ = {};
  std::vector<TilePiece> pieces_;
  std::vector<const Block*> targets_;
  AsyncCopy copy_;
};

const MicroOp* tensor_op(Context& c, const MicroOp* op) {
  TensorForm form = TensorForm::unpacked(op->immediate);
  std::array<TensorOperands, kLanes> operands;
  auto for_lanes = [&](auto use) {
    for (uint32_t left = c.mask; left != 0; left &= left - 1) use(std::countr_zero(left));
  };
  ListedAddress map(c, op, 0, 0);
  for_lanes([&](int lane) { operands[lane].map = map.of(lane); });
  for (uint32_t i = 0; i < form.rank; ++i) {
    ListedValue<uint32_t> value(c, op, kAddressEntries + i);
    for_lanes(
        [&](int lane) { operands[lane].position.at[i] = static_cast<int32_t>(value.of(lane)); });
  }
  for (uint32_t i = 0; i < form.num_offsets; ++i) {
    ListedValue<uint16_t> value(c, op, kAddressEntries + form.rank + i);
    for_lanes([&](int lane) { operands[lane].position.offsets[i] = value.of(lane); });
  }
  if (form.has_shared()) {
    ListedAddress shared(c, op, form.shared_entry(), 1);
    for_lanes([&](int lane) { operands[lane].shared = shared.of(lane); });
  }
  if (form.direction == Direction::kLoad) {
    ListedAddress barrier(c, op, form.barrier_entry(), 2);
    for_lanes([&](int lane) { operands[lane].barrier = barrier.of(lane); });
  }
  if (form.to_many) {
    ListedValue<uint16_t> mask(c, op, form.mask_entry());
    for_lanes([&](int lane) { operands[lane].mask = mask.of(lane); });
  }
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    if (!TensorCopy(c, op, lane, form).start(operands[lane])) return nullptr;
  }
  return op + 1;
}

/// Takes the direction and what belongs to it; false for what is none.
bool take_direction(OpQuery& query, TensorForm& form) {
  if (query.take("prefetch")) {
    form.direction = Direction::kPrefetch;
    return query.take("L2") && query.take("global");
  }
  bool is_store = query.take("bulk_group");
  if (query.take("reduce")) {
    form.direction = Direction::kReduce;
    int operation = query.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
    if (operation < 0 || !is_store) return false;
    form.operation = static_cast<uint8_t>(operation);
  } else if (is_store) {
    form.direction = Direction::kStore;
  }
  form.to_cluster = query.take("shared::cluster");
  bool in_own = query.take("shared::cta");
  if (!query.take("global") || in_own == form.to_cluster) return false;
  if (is_store) return in_own;
  form.to_many = query.take("multicast::cluster");
  return query.take("mbarrier::complete_tx::bytes") && !(form.to_many && in_own);
}

bool take_mode(OpQuery& query, TensorForm& form) {
  bool is_store = form.direction == Direction::kStore || form.direction == Direction::kReduce;
  if (query.take("tile")) return true;
  if (!query.take(is_store ? "im2col_no_offs" : "im2col")) return true;
  form.mode = TensorMode::kIm2col;
  if (!is_store) form.num_offsets = static_cast<uint8_t>(std::max(form.rank, uint8_t{2}) - 2);
  return form.rank >= 3;
}

void list_coordinates(OpQuery& query, OpSpec& spec, size_t index, const TensorForm& form) {
  const ptx::Operand* base =
      index < query.num_operands() ? element_of(query.operand(index), 0) : nullptr;
  Type type = base != nullptr ? query.type_of(*base) : Type::kNone;
  if (ptx::bytes_of(type) == 4) spec.aux |= 1;
  if (type == Type::kNone) type = Type::kB64;
  spec.operands.push_back({OpOperand::Kind::kListedAddress,
                           {static_cast<uint8_t>(index), 0, AluPlace::kA, type, false}});
  for (int i = 0; i < form.rank; ++i) add_listed(spec, index, Type::kB32, false, i + 1);
}

std::optional<Result<OpSpec>> find_tensor_copy(OpQuery& query) {
  if (!query.take("tensor")) return std::nullopt;
  query.take("async");
  query.take("bulk");
  TensorForm form;
  form.rank = static_cast<uint8_t>(query.take_one({"1d", "2d", "3d", "4d", "5d"}) + 1);
  bool known = form.rank > 0 && take_direction(query, form);
  known = known && take_mode(query, form);
  bool has_policy = query.take("L2::cache_hint");
  OpSpec spec;
  if (!known) return query.finish(std::move(spec), query.num_operands());
  spec.fn = tensor_op;
  spec.immediate = form.packed();
  spec.flags = kOpOrdered | kOpSideEffect | kOpListSource;
  bool is_load = form.direction == Direction::kLoad;
  size_t coordinates = is_load ? 1 : 0;
  bool right = query.is(coordinates, ptx::Operand::Kind::kCoordinates) &&
               element_of(query.operand(coordinates), form.rank + 1) == nullptr;
  if (!right) return query.refuse("it needs a tensor map with as many coordinates as dimensions");
  list_coordinates(query, spec, coordinates, form);
  size_t next = is_load ? 3 : form.has_shared() ? 2 : 1;
  if (form.num_offsets > 0) {
    for (int i = 0; i < form.num_offsets; ++i) add_listed(spec, next, Type::kU16, false, i);
    ++next;
  }
  if (form.has_shared()) add_listed_address(query, spec, is_load ? 0 : 1, 1);
  if (is_load) add_listed_address(query, spec, 2, 2);
  if (form.to_many) add_listed(spec, next++, Type::kU16, false);
  return query.finish(std::move(spec), next + (has_policy ? 1 : 0));
}

constexpr OpEntry kEntries[] = {{"cp", find_tensor_copy}};

}  // namespace

std::span<const OpEntry> tensor_entries() { return kEntries; }

}  // namespace cb::sim
