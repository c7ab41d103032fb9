#pragma once

#include <string_view>

#include "simulator/ptx/module.h"

namespace cb::ptx {

/// A special register of PTX ISA 9.0 (chapter 10).
struct SpecialRegister {
  std::string_view name;  ///< with the percent sign, without index or dot part
  Type type = Type::kNone;
  bool is_vector = false;  ///< read by component: .x, .y, .z or .w
};

/// The register that `name` (such as "%tid", "%envreg31", "%pm3_64") names, or nullptr.
const SpecialRegister* find_special_register(std::string_view name);

}  // namespace cb::ptx
