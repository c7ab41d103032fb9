#pragma once

// The list of instructions and forms that the coverage table is about (forms.txt says how it is
// written), and the PTX modules that hold one form a kernel.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cb::sim {

/// One statement or a few that belong together.
struct PtxForm {
  std::string text;     ///< without alternatives
  std::string pattern;  ///< the line of the list that it comes from
  /// The lowest target that has it: "sm_90a", or one above; "removed" for what no longer exists.
  std::string target = "sm_90a";

  bool is_legal() const { return target == "sm_90a"; }
};

struct PtxInstruction {
  std::string family;
  std::string name;
  std::vector<PtxForm> forms;
};

/// Reads the list. Error(kConfig) names the line.
Result<std::vector<PtxInstruction>> parse_forms(std::string_view text);

/// The form with each choice of its alternatives `<a|b>`, in order.
std::vector<std::string> expand_alternatives(const std::string& pattern);

/// What stands before the kernels: the variables and functions that forms may use.
std::string module_head(const std::string& target);
/// A kernel k<index> of kKernelLines lines with the form in line kFormLine of them, from 1.
std::string kernel_with(const PtxForm& form, size_t index);
inline constexpr size_t kKernelLines = 8;
inline constexpr size_t kFormLine = 6;

}  // namespace cb::sim
