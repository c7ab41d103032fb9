#include "simulator/exec/async_address.h"

#include <fmt/format.h>

#include "simulator/exec/engine_port.h"
#include "simulator/exec/kernel_run.h"
#include "simulator/exec/lanes.h"
#include "simulator/exec/memory_ops_address.h"

namespace cb::sim {
namespace {

void refuse(Context& c, const MicroOp* op, Finding::Kind kind, int lane, uint64_t address,
            const AsyncRange& range, const std::string& why) {
  fault(c, op, kind, lane,
        fmt::format("{} ({} bytes at {:#x}): {}", range.what, range.bytes, address, why), address,
        static_cast<uint32_t>(std::min<uint64_t>(range.bytes, UINT32_MAX)), range.write);
}

bool is_inside(const Block& block, uint64_t address, uint64_t bytes) {
  return address >= block.shared_base && address - block.shared_base <= block.shared_bytes &&
         bytes <= block.shared_bytes - (address - block.shared_base);
}

std::optional<SharedPlace> generic_place(Block& own, uint64_t address) {
  auto place = [&](Block& block) {
    return SharedPlace{&block, static_cast<uint32_t>(address - block.shared_base), address};
  };
  if (is_inside(own, address, 1)) return place(own);
  if (own.cluster == nullptr) return std::nullopt;
  for (Block* block : own.cluster->blocks) {
    if (block != nullptr && is_inside(*block, address, 1)) return place(*block);
  }
  return std::nullopt;
}

Finding::Kind finding_of(AccessFault fault) {
  switch (fault) {
    case AccessFault::kOutOfBounds:
      return Finding::Kind::kOutOfBounds;
    case AccessFault::kUseAfterFree:
      return Finding::Kind::kUseAfterFree;
    case AccessFault::kClosed:
      return Finding::Kind::kEarlyAccess;
    case AccessFault::kNotPermitted:
      return Finding::Kind::kNotPermitted;
    case AccessFault::kReadOnly:
      return Finding::Kind::kReadOnly;
    default:
      return Finding::Kind::kIllegalAddress;
  }
}

}  // namespace

void add_listed_address(const OpQuery& query, OpSpec& spec, size_t index, unsigned nth) {
  ptx::Type type =
      index < query.num_operands() ? query.type_of(query.operand(index)) : ptx::Type::kNone;
  if (ptx::bytes_of(type) == 4) spec.aux |= static_cast<uint8_t>(1u << nth);
  if (type == ptx::Type::kNone) type = ptx::Type::kB64;
  spec.operands.push_back({OpOperand::Kind::kListedAddress,
                           {static_cast<uint8_t>(index), -1, AluPlace::kA, type, false}});
}

ListedAddress::ListedAddress(Context& c, const MicroOp* op, uint32_t entry, unsigned nth) {
  const Slot* slots = c.code->lists.data() + op->list + entry;
  uint64_t offset = c.meta[slots[1].index].base;
  bool narrow = (op->aux >> nth & 1) != 0;
  if (narrow) {
    alignas(64) uint32_t room[kLanes];
    const uint32_t* base = read_lanes<uint32_t>(c, slots[0], room);
    for (int i = 0; i < kLanes; ++i) lanes_[i] = static_cast<uint32_t>(base[i] + offset);
  } else {
    alignas(64) uint64_t room[kLanes];
    const uint64_t* base = read_lanes<uint64_t>(c, slots[0], room);
    for (int i = 0; i < kLanes; ++i) lanes_[i] = base[i] + offset;
  }
}

std::optional<SharedPlace> locate_shared(Context& c, const MicroOp* op, int lane, uint64_t address,
                                         SharedWindow window, const AsyncRange& range) {
  if ((address & (range.align - 1)) != 0) {
    refuse(c, op, Finding::Kind::kMisaligned, lane, address, range,
           fmt::format("not a multiple of {}", range.align));
    return std::nullopt;
  }
  std::optional<SharedPlace> place;
  if (window == SharedWindow::kGeneric) {
    place = generic_place(*c.block, address);
    if (!place) {
      refuse(c, op, Finding::Kind::kIllegalAddress, lane, address, range,
             "not in the shared memory of a block of the cluster");
      return std::nullopt;
    }
  } else if (window == SharedWindow::kOwn && address < c.block->shared_bytes) {
    place = SharedPlace{c.block, static_cast<uint32_t>(address), c.block->shared_base + address};
  } else if (address <= UINT32_MAX) {
    place = shared_place(*c.block, static_cast<uint32_t>(address));
    if (place && window == SharedWindow::kOwn && place->block != c.block) {
      refuse(c, op, Finding::Kind::kOutOfBounds, lane, address, range,
             "the shared memory of another block, where only the own is allowed");
      return std::nullopt;
    }
  }
  if (!place) {
    refuse(c, op, Finding::Kind::kOutOfBounds, lane, address, range,
           "no such address in the cluster's shared memory, or its block has ended");
    return std::nullopt;
  }
  if (place->offset > place->block->shared_bytes ||
      range.bytes > place->block->shared_bytes - place->offset) {
    refuse(c, op, Finding::Kind::kOutOfBounds, lane, address, range,
           fmt::format("offset {} in {} bytes of shared memory", place->offset,
                       place->block->shared_bytes));
    return std::nullopt;
  }
  return place;
}

const Allocation* locate_global(Context& c, const MicroOp* op, int lane, uint64_t address,
                                const AsyncRange& range) {
  if ((address & (range.align - 1)) != 0) {
    refuse(c, op, Finding::Kind::kMisaligned, lane, address, range,
           fmt::format("not a multiple of {}", range.align));
    return nullptr;
  }
  Access access =
      c.memory->check(address, std::max<uint64_t>(range.bytes, 1), c.run->accessor, range.write);
  if (access.fault == AccessFault::kNone) return access.allocation;
  std::string why = c.memory->describe(address);
  if (access.fault == AccessFault::kMulticast) {
    why = "a multicast address, which only multimem instructions may use";
  }
  refuse(c, op, finding_of(access.fault), lane, address, range, why);
  return nullptr;
}

std::optional<SharedPlace> locate_barrier(Context& c, const MicroOp* op, int lane, uint64_t address,
                                          SharedWindow window) {
  return locate_shared(c, op, lane, address, window,
                       {.what = "mbarrier",
                        .bytes = BarrierState::kBytes,
                        .align = BarrierState::kBytes,
                        .write = true});
}

SharedWindow take_shared_window(OpQuery& query) {
  if (query.take("shared::cluster")) return SharedWindow::kCluster;
  if (query.take("shared") || query.take("shared::cta")) return SharedWindow::kOwn;
  return SharedWindow::kGeneric;
}

}  // namespace cb::sim
