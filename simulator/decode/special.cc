#include "simulator/decode/special.h"

#include <array>
#include <charconv>
#include <utility>

namespace cb::sim {
namespace {

constexpr std::array kNames = {
    std::pair{"%tid.x", Special::kTidX},
    std::pair{"%tid.y", Special::kTidY},
    std::pair{"%tid.z", Special::kTidZ},
    std::pair{"%ntid.x", Special::kNtidX},
    std::pair{"%ntid.y", Special::kNtidY},
    std::pair{"%ntid.z", Special::kNtidZ},
    std::pair{"%ctaid.x", Special::kCtaidX},
    std::pair{"%ctaid.y", Special::kCtaidY},
    std::pair{"%ctaid.z", Special::kCtaidZ},
    std::pair{"%nctaid.x", Special::kNctaidX},
    std::pair{"%nctaid.y", Special::kNctaidY},
    std::pair{"%nctaid.z", Special::kNctaidZ},
    std::pair{"%laneid", Special::kLaneid},
    std::pair{"%warpid", Special::kWarpid},
    std::pair{"%nwarpid", Special::kNwarpid},
    std::pair{"%smid", Special::kSmid},
    std::pair{"%nsmid", Special::kNsmid},
    std::pair{"%gridid", Special::kGridid},
    std::pair{"%lanemask_eq", Special::kLanemaskEq},
    std::pair{"%lanemask_le", Special::kLanemaskLe},
    std::pair{"%lanemask_lt", Special::kLanemaskLt},
    std::pair{"%lanemask_ge", Special::kLanemaskGe},
    std::pair{"%lanemask_gt", Special::kLanemaskGt},
    std::pair{"%total_smem_size", Special::kTotalSmemSize},
    std::pair{"%dynamic_smem_size", Special::kDynamicSmemSize},
    std::pair{"%aggr_smem_size", Special::kAggrSmemSize},
    std::pair{"%reserved_smem_offset_begin", Special::kReservedSmemBegin},
    std::pair{"%reserved_smem_offset_end", Special::kReservedSmemEnd},
    std::pair{"%reserved_smem_offset_cap", Special::kReservedSmemCap},
    std::pair{"%reserved_smem_offset_0", Special::kReservedSmemBegin},
    std::pair{"%reserved_smem_offset_1", Special::kReservedSmem1},
    std::pair{"%clusterid.x", Special::kClusterIdX},
    std::pair{"%clusterid.y", Special::kClusterIdY},
    std::pair{"%clusterid.z", Special::kClusterIdZ},
    std::pair{"%nclusterid.x", Special::kNclusterIdX},
    std::pair{"%nclusterid.y", Special::kNclusterIdY},
    std::pair{"%nclusterid.z", Special::kNclusterIdZ},
    std::pair{"%cluster_ctaid.x", Special::kClusterCtaidX},
    std::pair{"%cluster_ctaid.y", Special::kClusterCtaidY},
    std::pair{"%cluster_ctaid.z", Special::kClusterCtaidZ},
    std::pair{"%cluster_nctaid.x", Special::kClusterNctaidX},
    std::pair{"%cluster_nctaid.y", Special::kClusterNctaidY},
    std::pair{"%cluster_nctaid.z", Special::kClusterNctaidZ},
    std::pair{"%cluster_ctarank", Special::kClusterCtarank},
    std::pair{"%cluster_nctarank", Special::kClusterNctarank},
};

constexpr std::string_view kEnvreg = "%envreg";

}  // namespace

std::optional<Preset> special_preset(std::string_view name) {
  Preset preset{.kind = Preset::Kind::kSpecial};
  for (const auto& [known, special] : kNames) {
    if (name == known) {
      preset.special = special;
      return preset;
    }
  }
  // No counter is ever programmed, and no kernel is part of a graph that a device launched.
  if (name.starts_with("%pm") || name == "%current_graph_exec") {
    return Preset{.kind = Preset::Kind::kConstant, .value = 0};
  }
  if (!name.starts_with(kEnvreg)) return std::nullopt;
  std::string_view digits = name.substr(kEnvreg.size());
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), preset.index);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  preset.special = Special::kEnvreg;
  return preset;
}

}  // namespace cb::sim
