#include "simulator/decode/refusals.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace cb::sim {
namespace {

constexpr const char* kTextures = "textures and surfaces are not modelled";
constexpr const char* kRemoved = "needs .sync since sm_70";
constexpr const char* kBlackwell = "needs sm_100";
constexpr const char* kBlackwellOnly = "needs sm_100a";

struct Entry {
  std::string_view opcode;
  std::string_view modifier;  ///< empty: any form
  const char* why;
};

constexpr std::array kOpcodes = {
    Entry{"tex", "", kTextures},
    Entry{"tld4", "", kTextures},
    Entry{"txq", "", kTextures},
    Entry{"istypep", "", kTextures},
    Entry{"suld", "", kTextures},
    Entry{"sust", "", kTextures},
    Entry{"sured", "", kTextures},
    Entry{"suq", "", kTextures},
    Entry{"tcgen05", "", kBlackwellOnly},
    Entry{"clusterlaunchcontrol", "", kBlackwell},
    Entry{"st", "bulk", kBlackwell},
    Entry{"st", "v8", kBlackwell},
    Entry{"ld", "v8", kBlackwell},
    Entry{"add", "f32x2", kBlackwell},
    Entry{"sub", "f32x2", kBlackwell},
    Entry{"mul", "f32x2", kBlackwell},
    Entry{"fma", "f32x2", kBlackwell},
    Entry{"redux", "f32", kBlackwellOnly},
    Entry{"cp", "cp_mask", kBlackwell},
    Entry{"cvt", "rs", kBlackwellOnly},
    Entry{"cvt", "e2m1x2", kBlackwellOnly},
    Entry{"cvt", "e2m3x2", kBlackwellOnly},
    Entry{"cvt", "e3m2x2", kBlackwellOnly},
    Entry{"cvt", "ue8m0x2", kBlackwellOnly},
    Entry{"mma", "kind::f8f6f4", "needs sm_120a"},
    Entry{"mma", "kind::mxf4", "needs sm_120a"},
    Entry{"mma", "kind::mxf4nvf4", "needs sm_120a"},
    Entry{"mma", "kind::mxf8f6f4", "needs sm_120a"},
};

bool is_mixed_precision(const ptx::Instruction& instruction) {
  constexpr std::array<std::string_view, 3> kMixed = {"add", "sub", "fma"};
  bool half = instruction.has("f16") || instruction.has("bf16");
  return std::find(kMixed.begin(), kMixed.end(), instruction.opcode) != kMixed.end() && half &&
         instruction.has("f32");
}

}  // namespace

std::optional<std::string> out_of_scope(const ptx::Instruction& instruction) {
  for (const Entry& entry : kOpcodes) {
    if (entry.opcode != instruction.opcode) continue;
    if (entry.modifier.empty() || instruction.has(entry.modifier)) return entry.why;
  }
  bool is_exchange = instruction.opcode == "shfl" || instruction.opcode == "vote";
  if (is_exchange && !instruction.has("sync")) return kRemoved;
  bool is_async = instruction.opcode == "st" || instruction.opcode == "red";
  if (is_async && instruction.has("async") && instruction.has("mmio")) return kBlackwell;
  bool is_access = instruction.opcode == "ld" || instruction.opcode == "st";
  bool is_wide = instruction.has("b64") || instruction.has("u64") || instruction.has("s64") ||
                 instruction.has("f64");
  if (is_access && instruction.has("v4") && is_wide) return kBlackwell;
  bool is_extreme = instruction.opcode == "min" || instruction.opcode == "max";
  if (is_extreme && instruction.operands.size() == 4 && instruction.has("f32")) return kBlackwell;
  if (is_mixed_precision(instruction)) return kBlackwell;
  return std::nullopt;
}

}  // namespace cb::sim
