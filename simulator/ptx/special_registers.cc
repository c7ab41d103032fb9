#include "simulator/ptx/special_registers.h"

#include <array>

namespace cb::ptx {
namespace {

// A '#' stands for an index below `count`.
struct Entry {
  SpecialRegister reg;
  unsigned count = 0;
};

constexpr std::array kEntries = {
    Entry{{"%tid", Type::kU32, true}},
    Entry{{"%ntid", Type::kU32, true}},
    Entry{{"%laneid", Type::kU32}},
    Entry{{"%warpid", Type::kU32}},
    Entry{{"%nwarpid", Type::kU32}},
    Entry{{"%ctaid", Type::kU32, true}},
    Entry{{"%nctaid", Type::kU32, true}},
    Entry{{"%smid", Type::kU32}},
    Entry{{"%nsmid", Type::kU32}},
    Entry{{"%gridid", Type::kU64}},
    Entry{{"%is_explicit_cluster", Type::kPred}},
    Entry{{"%clusterid", Type::kU32, true}},
    Entry{{"%nclusterid", Type::kU32, true}},
    Entry{{"%cluster_ctaid", Type::kU32, true}},
    Entry{{"%cluster_nctaid", Type::kU32, true}},
    Entry{{"%cluster_ctarank", Type::kU32}},
    Entry{{"%cluster_nctarank", Type::kU32}},
    Entry{{"%lanemask_eq", Type::kU32}},
    Entry{{"%lanemask_le", Type::kU32}},
    Entry{{"%lanemask_lt", Type::kU32}},
    Entry{{"%lanemask_ge", Type::kU32}},
    Entry{{"%lanemask_gt", Type::kU32}},
    Entry{{"%clock", Type::kU32}},
    Entry{{"%clock_hi", Type::kU32}},
    Entry{{"%clock64", Type::kU64}},
    Entry{{"%pm#", Type::kU32}, 8},
    Entry{{"%pm#_64", Type::kU64}, 8},
    Entry{{"%envreg#", Type::kB32}, 32},
    Entry{{"%globaltimer", Type::kU64}},
    Entry{{"%globaltimer_lo", Type::kU32}},
    Entry{{"%globaltimer_hi", Type::kU32}},
    Entry{{"%reserved_smem_offset_begin", Type::kB32}},
    Entry{{"%reserved_smem_offset_end", Type::kB32}},
    Entry{{"%reserved_smem_offset_cap", Type::kB32}},
    Entry{{"%reserved_smem_offset_#", Type::kB32}, 2},
    Entry{{"%total_smem_size", Type::kU32}},
    Entry{{"%aggr_smem_size", Type::kU32}},
    Entry{{"%dynamic_smem_size", Type::kU32}},
    Entry{{"%current_graph_exec", Type::kU64}},
};

bool matches(const Entry& entry, std::string_view name) {
  size_t hash = entry.reg.name.find('#');
  if (hash == std::string_view::npos) return entry.reg.name == name;
  std::string_view before = entry.reg.name.substr(0, hash);
  std::string_view after = entry.reg.name.substr(hash + 1);
  if (!name.starts_with(before) || !name.ends_with(after)) return false;
  if (name.size() <= before.size() + after.size()) return false;
  std::string_view digits = name.substr(before.size(), name.size() - before.size() - after.size());
  if (digits.size() > 2 || (digits.size() == 2 && digits[0] == '0')) return false;
  unsigned index = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return false;
    index = index * 10 + static_cast<unsigned>(c - '0');
  }
  return index < entry.count;
}

}  // namespace

const SpecialRegister* find_special_register(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (matches(entry, name)) return &entry.reg;
  }
  return nullptr;
}

}  // namespace cb::ptx
