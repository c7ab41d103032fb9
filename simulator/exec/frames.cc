// Registers of warps: frames and the presets in them.

#include <cstring>

#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

constexpr size_t kVectorAlign = 64;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

/// Sets a slot lane by lane: as base and stride where that is possible.
void set_lanes(Frame& frame, uint16_t slot, const std::array<uint32_t, kLanes>& values,
               uint32_t live) {
  Meta& meta = frame.meta[slot];
  auto stride = static_cast<int32_t>(values[1] - values[0]);
  bool affine = true;
  for (uint32_t i = 1; i < kLanes && (live >> i & 1) != 0; ++i) {
    affine = affine && values[i] == values[0] + static_cast<uint32_t>(stride) * i;
  }
  if (affine) {
    meta = {.base = values[0], .stride = stride};
    return;
  }
  meta.is_vector = 1;
  for (const Preset& preset : frame.code->presets) {
    if (preset.slot != slot) continue;
    std::memcpy(frame.vectors + size_t{preset.vector} * kVectorAlign, values.data(), sizeof values);
    return;
  }
}

/// Thread indices of the lanes of a warp; lanes beyond the block's end go on counting.
std::array<uint32_t, kLanes> thread_indices(const Warp& warp, int dimension) {
  const uint32_t* block = warp.block->run->launch.block;
  std::array<uint32_t, kLanes> values;
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t linear = warp.index * kLanes + i;
    values[i] = dimension == 0   ? linear % block[0]
                : dimension == 1 ? linear / block[0] % block[1]
                                 : linear / block[0] / block[1];
  }
  return values;
}

uint32_t lane_mask(Special special, uint32_t lane) {
  uint32_t bit = 1u << lane;
  switch (special) {
    case Special::kLanemaskEq:
      return bit;
    case Special::kLanemaskLe:
      return bit | (bit - 1);
    case Special::kLanemaskLt:
      return bit - 1;
    case Special::kLanemaskGe:
      return ~(bit - 1);
    default:
      return ~(bit - 1) & ~bit;
  }
}

/// Of a kernel without clusters, every block is a cluster of its own.
uint64_t cluster_special(Special special, const Block& block) {
  const KernelLaunch& launch = block.run->launch;
  auto axis_from = [special](Special first) {
    return static_cast<size_t>(special) - static_cast<size_t>(first);
  };
  switch (special) {
    case Special::kClusterIdX:
    case Special::kClusterIdY:
    case Special::kClusterIdZ: {
      size_t axis = axis_from(Special::kClusterIdX);
      return block.index[axis] / launch.cluster[axis];
    }
    case Special::kNclusterIdX:
    case Special::kNclusterIdY:
    case Special::kNclusterIdZ: {
      size_t axis = axis_from(Special::kNclusterIdX);
      return launch.grid[axis] / launch.cluster[axis];
    }
    case Special::kClusterCtaidX:
    case Special::kClusterCtaidY:
    case Special::kClusterCtaidZ: {
      size_t axis = axis_from(Special::kClusterCtaidX);
      return block.index[axis] % launch.cluster[axis];
    }
    case Special::kClusterNctaidX:
    case Special::kClusterNctaidY:
    case Special::kClusterNctaidZ:
      return launch.cluster[axis_from(Special::kClusterNctaidX)];
    case Special::kClusterCtarank:
      return block.cluster_rank;
    case Special::kClusterNctarank:
      return block.run->cluster_blocks;
    default:
      return 0;
  }
}

/// Special registers that have one value for all lanes of a warp.
uint64_t uniform_special(const Preset& preset, const Warp& warp, uint32_t num_sms) {
  const Block& block = *warp.block;
  const KernelRun& run = *block.run;
  switch (preset.special) {
    case Special::kNtidX:
    case Special::kNtidY:
    case Special::kNtidZ:
      return run.launch.block[static_cast<int>(preset.special) - static_cast<int>(Special::kNtidX)];
    case Special::kCtaidX:
    case Special::kCtaidY:
    case Special::kCtaidZ:
      return block.index[static_cast<int>(preset.special) - static_cast<int>(Special::kCtaidX)];
    case Special::kNctaidX:
    case Special::kNctaidY:
    case Special::kNctaidZ:
      return run.launch
          .grid[static_cast<int>(preset.special) - static_cast<int>(Special::kNctaidX)];
    case Special::kWarpid:
      return warp.index;
    case Special::kNwarpid:
      return 64;
    case Special::kSmid:
      return block.sm;
    case Special::kNsmid:
      return num_sms;
    case Special::kGridid:
      return run.id;
    case Special::kTotalSmemSize:
      return run.user_shared_bytes;
    case Special::kAggrSmemSize:
      return run.user_shared_bytes + run.reserved_shared_bytes;
    case Special::kReservedSmemBegin:
      return run.reserved_shared_offset;
    case Special::kReservedSmemEnd:
      return run.reserved_shared_offset + run.reserved_shared_bytes;
    case Special::kReservedSmemCap:
      return run.reserved_shared_bytes;
    // Two users of the reserved memory are told apart: half of it belongs to each.
    case Special::kReservedSmem1:
      return run.reserved_shared_offset + run.reserved_shared_bytes / 2;
    case Special::kDynamicSmemSize:
      return run.launch.dynamic_shared_bytes;
    case Special::kEnvreg:
      if (preset.index == 1) return run.workspace >> 32;
      return preset.index == 2 ? run.workspace & 0xffffffff : 0;
    default:
      return cluster_special(preset.special, block);
  }
}

}  // namespace

void set_special(Frame& frame, const Preset& preset, const Warp& warp, uint32_t num_sms) {
  std::array<uint32_t, kLanes> values;
  switch (preset.special) {
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
      if (warp.block->run->launch.block[0] == warp.block->run->threads_per_block) {
        bool is_x = preset.special == Special::kTidX;
        frame.meta[preset.slot] = {.base = is_x ? warp.index * kLanes : 0, .stride = is_x ? 1 : 0};
        return;
      }
      values =
          thread_indices(warp, static_cast<int>(preset.special) - static_cast<int>(Special::kTidX));
      break;
    case Special::kLaneid:
      for (uint32_t i = 0; i < kLanes; ++i) values[i] = i;
      break;
    case Special::kLanemaskEq:
    case Special::kLanemaskLe:
    case Special::kLanemaskLt:
    case Special::kLanemaskGe:
    case Special::kLanemaskGt:
      for (uint32_t i = 0; i < kLanes; ++i) values[i] = lane_mask(preset.special, i);
      break;
    default:
      frame.meta[preset.slot] = {.base = uniform_special(preset, warp, num_sms)};
      return;
  }
  set_lanes(frame, preset.slot, values, warp.live);
}

const FrameTemplate& EngineState::frame_template(KernelRun& run, const FunctionCode& code) {
  auto [place, is_new] = run.templates.try_emplace(&code);
  FrameTemplate& result = place->second;
  if (!is_new) return result;
  result.meta.resize(code.num_slots);
  for (const Preset& preset : code.presets) {
    Meta& meta = result.meta[preset.slot];
    switch (preset.kind) {
      case Preset::Kind::kConstant:
      case Preset::Kind::kShared:
        meta.base = preset.value;
        break;
      case Preset::Kind::kSpecial:
        result.of_warp.push_back(&preset);
        break;
      case Preset::Kind::kVariable:
        meta.base = run.launch.variables->at(preset.index) + preset.value;
        break;
      case Preset::Kind::kDynamicShared:
        meta.base = run.dynamic_shared_offset + preset.value;
        break;
      case Preset::Kind::kLocal:
        result.of_frame.push_back(&preset);
        break;
      case Preset::Kind::kParameter:
        meta.base = run.param_base + preset.value;
        break;
      case Preset::Kind::kFunction:
        meta.base = function_handle(preset.index);
        break;
    }
    if (preset.bytes < 8) meta.base &= (uint64_t{1} << (8 * preset.bytes)) - 1;
  }
  return result;
}

std::unique_ptr<Frame> EngineState::make_frame(Warp& warp, const FunctionCode& code, uint32_t mask,
                                               uint32_t local_offset) {
  const FrameTemplate& base = frame_template(*warp.block->run, code);
  size_t meta_bytes = round_up(code.num_slots * sizeof(Meta), kVectorAlign);
  size_t predicate_bytes = round_up(code.num_predicates * sizeof(uint32_t), kVectorAlign);
  size_t ready_bytes = options.timed ? round_up(code.num_slots * sizeof(Time), kVectorAlign) : 0;
  size_t vector_bytes = size_t{code.vector_lines} * kVectorAlign;
  auto frame = std::make_unique<Frame>();
  frame->storage = frame_pool.take(meta_bytes + predicate_bytes + ready_bytes + vector_bytes);
  std::byte* place = frame->storage.get();
  frame->code = &code;
  frame->mask = mask;
  frame->local_offset = local_offset;
  frame->meta = reinterpret_cast<Meta*>(place);
  std::memcpy(static_cast<void*>(frame->meta), base.meta.data(), code.num_slots * sizeof(Meta));
  place += meta_bytes;
  frame->predicates = reinterpret_cast<uint32_t*>(place);
  std::memset(place, 0, predicate_bytes + ready_bytes);
  place += predicate_bytes;
  if (options.timed) frame->ready = reinterpret_cast<Time*>(place);
  frame->vectors = place + ready_bytes;
  for (const Preset* preset : base.of_warp) {
    set_special(*frame, *preset, warp, profile.device.num_sms);
  }
  for (const Preset* preset : base.of_frame) {
    frame->meta[preset->slot].base = local_offset + preset->value;
  }
  return frame;
}

}  // namespace cb::sim
