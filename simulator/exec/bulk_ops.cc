// Bulk copies and reductions of contiguous bytes between global memory and the shared memory of a
// cluster: cp.async.bulk and cp.reduce.async.bulk.

#include <fmt/format.h>

#include <algorithm>

#include "simulator/exec/async_address.h"
#include "simulator/exec/engine_port.h"
#include "simulator/exec/kernel_run.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Type;

constexpr std::string_view kOperations[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
constexpr uint32_t kUnit = 16;  ///< of addresses and sizes

enum class Place : uint8_t { kCluster, kOwn, kGlobal };

/// What the text asks for, as it is in MicroOp::immediate. The list has the destination, the
/// source, the size, and where they are given the mbarrier and the mask of blocks.
struct BulkForm {
  Place to = Place::kGlobal;
  Place from = Place::kGlobal;
  bool tells_barrier = false;
  bool to_many = false;  ///< .multicast::cluster
  bool reduces = false;
  uint8_t operation = 0;
  Type type = Type::kNone;

  uint64_t packed() const {
    return static_cast<uint64_t>(to) | static_cast<uint64_t>(from) << 2 |
           uint64_t{tells_barrier} << 4 | uint64_t{to_many} << 5 | uint64_t{reduces} << 7 |
           uint64_t{operation} << 8 | static_cast<uint64_t>(type) << 16;
  }
  static BulkForm unpacked(uint64_t bits) {
    BulkForm form;
    form.to = static_cast<Place>(bits & 3);
    form.from = static_cast<Place>(bits >> 2 & 3);
    form.tells_barrier = (bits >> 4 & 1) != 0;
    form.to_many = (bits >> 5 & 1) != 0;
    form.reduces = (bits >> 7 & 1) != 0;
    form.operation = static_cast<uint8_t>(bits >> 8 & 0xff);
    form.type = static_cast<Type>(bits >> 16 & 0xff);
    return form;
  }
};

constexpr uint32_t kSizeEntry = 2 * kAddressEntries;
constexpr uint32_t kBarrierEntry = kSizeEntry + 1;
constexpr uint32_t kMaskEntry = kBarrierEntry + kAddressEntries;

SharedWindow window_of(Place place) {
  return place == Place::kOwn ? SharedWindow::kOwn : SharedWindow::kCluster;
}

/// One lane's copy being put together.
class BulkCopy {
 public:
  BulkCopy(Context& c, const MicroOp* op, int lane, uint32_t bytes)
      : c_(c), op_(op), lane_(lane), bytes_(bytes), form_(BulkForm::unpacked(op->immediate)) {}

  /// False after a fault.
  bool start(uint64_t destination, uint64_t source, uint64_t barrier, uint32_t mask) {
    if (bytes_ % kUnit != 0) {
      fault(c_, op_, Finding::Kind::kMisaligned, lane_,
            fmt::format("a size of {} bytes: not a multiple of {}", bytes_, kUnit));
      return false;
    }
    if (form_.reduces) copy_.reduce = find_reduction(kOperations[form_.operation], form_.type);
    if (!form_.tells_barrier) copy_.group = AsyncCopy::Group::kBulk;
    if (!find_source(source)) return false;
    bool found = form_.to == Place::kGlobal ? find_global(destination)
                                            : find_shared(destination, barrier, mask);
    return found && start_copy(c_, op_, uint32_t{1} << lane_, std::move(copy_));
  }

 private:
  AsyncRange range(const char* what, bool write) const {
    return {.what = what, .bytes = bytes_, .align = kUnit, .write = write};
  }

  void add_piece(uint64_t destination) {
    if (bytes_ == 0) return;
    copy_.pieces.push_back({.source = source_, .destination = destination, .bytes = bytes_});
  }

  bool find_source(uint64_t address) {
    if (form_.from == Place::kGlobal) {
      source_ = address;
      return locate_global(c_, op_, lane_, address, range("the source", false)) != nullptr;
    }
    auto place =
        locate_shared(c_, op_, lane_, address, SharedWindow::kOwn, range("the source", false));
    if (!place) return false;
    source_ = place->address;
    copy_.add_block(place->block);
    return true;
  }

  bool find_global(uint64_t address) {
    add_piece(address);
    return locate_global(c_, op_, lane_, address, range("the destination", true)) != nullptr;
  }

  bool find_shared(uint64_t destination, uint64_t barrier, uint32_t mask) {
    auto to = locate_shared(c_, op_, lane_, destination, window_of(form_.to),
                            range("the destination", true));
    if (!to) return false;
    auto told = locate_barrier(c_, op_, lane_, barrier, window_of(form_.to));
    if (!told) return false;
    if (!form_.to_many) {
      add_target(*to->block, to->offset, *told->block, told->offset);
      return true;
    }
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      auto rank = static_cast<uint32_t>(std::countr_zero(left));
      auto block = shared_place(*c_.block, mapped_shared_address(0, rank));
      if (!block) {
        fault(c_, op_, Finding::Kind::kOutOfBounds, lane_,
              fmt::format("the mask names block {} of the cluster, which it does not have or "
                          "which has ended",
                          rank));
        return false;
      }
      add_target(*block->block, to->offset, *block->block, told->offset);
    }
    return true;
  }

  void add_target(Block& block, uint32_t offset, Block& told, uint32_t barrier_offset) {
    add_piece(block.shared_base + offset);
    copy_.signals.push_back({&told, told.shared_base + barrier_offset, {.complete_bytes = bytes_}});
    copy_.add_block(&block);
    copy_.add_block(&told);
  }

  Context& c_;
  const MicroOp* op_;
  const int lane_;
  const uint32_t bytes_;
  const BulkForm form_;
  uint64_t source_ = 0;
  AsyncCopy copy_;
};

const MicroOp* bulk_op(Context& c, const MicroOp* op) {
  BulkForm form = BulkForm::unpacked(op->immediate);
  ListedAddress destination(c, op, 0, 0);
  ListedAddress source(c, op, kAddressEntries, 1);
  ListedValue<uint32_t> bytes(c, op, kSizeEntry);
  std::optional<ListedAddress> barrier;
  if (form.tells_barrier) barrier.emplace(c, op, kBarrierEntry, 2);
  std::optional<ListedValue<uint16_t>> mask;
  if (form.to_many) mask.emplace(c, op, kMaskEntry);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    BulkCopy copy(c, op, lane, bytes.of(lane));
    if (!copy.start(destination.of(lane), source.of(lane), barrier ? barrier->of(lane) : 0,
                    mask ? mask->of(lane) : 0)) {
      return nullptr;
    }
  }
  return op + 1;
}

/// Takes .dst.src; false when there are not two.
bool take_places(OpQuery& query, BulkForm& form) {
  int found = 0;
  for (const auto& modifier : query.instruction().modifiers) {
    constexpr std::pair<std::string_view, Place> kPlaces[] = {{"shared::cluster", Place::kCluster},
                                                              {"shared::cta", Place::kOwn},
                                                              {"global", Place::kGlobal}};
    for (const auto& [name, place] : kPlaces) {
      if (modifier == name) (found++ == 0 ? form.to : form.from) = place;
    }
  }
  query.take("shared::cluster");
  query.take("shared::cta");
  query.take("global");
  return found == 2;
}

/// Takes the operation and the type of a reduction.
bool take_reduction(OpQuery& query, BulkForm& form) {
  form.reduces = true;
  form.type = query.last_type();
  int operation = query.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  if (operation < 0) return false;
  form.operation = static_cast<uint8_t>(operation);
  query.take(ptx::name_of(form.type));
  bool is_half = form.type == Type::kF16 || form.type == Type::kBf16;
  bool has_noftz = query.take("noftz");
  if (has_noftz != (is_half && kOperations[form.operation] == "add")) return false;
  if (find_reduction(kOperations[form.operation], form.type) == nullptr) return false;
  if (form.to == Place::kGlobal) return true;
  // The sums of shared memory are of integers; its other reductions have 32 bits.
  bool is_sum = kOperations[form.operation] == "add";
  bool is_wide = ptx::bytes_of(form.type) == 8;
  return (is_integer(form.type) || is_bits(form.type)) && (!is_wide || is_sum);
}

bool is_direction(const BulkForm& form) {
  if (form.to == Place::kGlobal) return form.from == Place::kOwn && !form.tells_barrier;
  if (!form.tells_barrier) return false;
  if (form.from == Place::kGlobal) return !form.reduces;
  return form.to == Place::kCluster && form.from == Place::kOwn && !form.to_many;
}

std::optional<Result<OpSpec>> find_prefetch(OpQuery& query) {
  OpSpec spec;
  if (query.take("L2") && query.take("global")) {
    spec.fn = [](Context&, const MicroOp* op) -> const MicroOp* { return op + 1; };
  }
  spec.flags = kOpListSource;
  bool has_policy = query.take("L2::cache_hint");
  add_listed_address(query, spec, 0, 0);
  add_listed(spec, 1, Type::kU32, false);
  return query.finish(std::move(spec), has_policy ? 3 : 2);
}

std::optional<Result<OpSpec>> find_bulk(OpQuery& query) {
  if (!query.has("bulk") || query.has("tensor")) return std::nullopt;
  query.take("async");
  query.take("bulk");
  if (query.take("prefetch")) return find_prefetch(query);
  BulkForm form;
  bool known = take_places(query, form);
  form.tells_barrier = query.take("mbarrier::complete_tx::bytes");
  known &= form.tells_barrier != query.take("bulk_group");
  form.to_many = query.take("multicast::cluster");
  bool has_policy = query.take("L2::cache_hint");
  if (query.take("reduce")) known &= take_reduction(query, form);
  known &= is_direction(form);
  if (form.to_many && form.to != Place::kCluster) known = false;
  OpSpec spec;
  if (known) spec.fn = bulk_op;
  spec.immediate = form.packed();
  spec.flags = kOpOrdered | kOpSideEffect | kOpListSource;
  add_listed_address(query, spec, 0, 0);
  add_listed_address(query, spec, 1, 1);
  add_listed(spec, 2, Type::kU32, false);
  size_t next = 3;
  if (form.tells_barrier) add_listed_address(query, spec, next++, 2);
  if (form.to_many) add_listed(spec, next++, Type::kU16, false);
  return query.finish(std::move(spec), next + (has_policy ? 1 : 0));
}

constexpr OpEntry kEntries[] = {{"cp", find_bulk}};

}  // namespace

std::span<const OpEntry> bulk_entries() { return kEntries; }

}  // namespace cb::sim
