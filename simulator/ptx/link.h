#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "simulator/ptx/module.h"

namespace cb::ptx {

/// Joins modules as the device linker does. A definition takes the place of declarations of its
/// name, a strong one that of weak ones; what is neither `.visible` nor `.weak` belongs to its own
/// module, and gets another name where two would meet. Error(kConfig) for two definitions, and for
/// declarations that do not match. What nobody defines stays a declaration: see `unresolved`.
/// Linear in the size of the modules, up to a logarithm.
Result<Module> link(std::vector<Module> modules);

/// "ptx:12: function 'f' is not defined" for the first use of a function or variable that the
/// module only declares; empty when there is none. Functions that the system provides count as
/// defined.
std::string unresolved(const Module& module);

}  // namespace cb::ptx
