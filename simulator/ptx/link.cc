#include "simulator/ptx/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "simulator/ptx/cursor.h"

namespace cb::ptx {
namespace {

// Operands refer to variables and functions by index, initial values by name. Each module's items
// get their place in the result first; then the indices in its code are changed to these places.

bool is_local(const Variable& variable) {
  return !variable.is_extern && !variable.is_visible && !variable.is_weak;
}

bool is_local(const Function& function) {
  return !function.is_entry && !function.is_extern && !function.is_visible && !function.is_weak;
}

bool same_sizes(const std::vector<Variable>& a, const std::vector<Variable>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Variable& x, const Variable& y) { return x.bytes == y.bytes; });
}

/// Why the two cannot be one; empty when they can.
std::string mismatch(const Variable& a, const Variable& b) {
  if (a.space != b.space) return "is declared in another state space";
  bool sizes_known = a.bytes != 0 && b.bytes != 0;
  return sizes_known && a.bytes != b.bytes ? "is declared with another size" : "";
}
std::string mismatch(const Function& a, const Function& b) {
  bool same = a.is_entry == b.is_entry && same_sizes(a.parameters, b.parameters) &&
              same_sizes(a.return_values, b.return_values);
  return same ? "" : "is declared with another signature";
}

class Linker {
 public:
  explicit Linker(const std::vector<Module>& modules) {
    for (const Module& module : modules) {
      for (const Variable& variable : module.variables) reserve(variable);
      for (const Function& function : module.functions) reserve(function);
    }
    result_.files.resize(1);
  }

  /// False: `fault` says why.
  bool add(Module module) {
    rename_locals(module);
    std::vector<Place> variables, functions;
    for (const Variable& variable : module.variables) {
      if (!place(variable, result_.variables, variable_indices_, function_indices_, variables)) {
        return false;
      }
    }
    for (const Function& function : module.functions) {
      if (!place(function, result_.functions, function_indices_, variable_indices_, functions)) {
        return false;
      }
    }
    for (size_t at = 0; at < functions.size(); ++at) {
      if (!functions[at].taken) continue;
      Function& function = module.functions[at];
      if (function.alias_of >= 0) {
        auto aliasee = static_cast<size_t>(function.alias_of);
        function.alias_of = static_cast<int32_t>(functions[aliasee].index);
      }
      for (Instruction& instruction : function.body) {
        if (instruction.location >= 0) {
          instruction.location += static_cast<int32_t>(result_.locations.size());
        }
        for (Operand& operand : instruction.operands) remap(operand, variables, functions);
      }
      result_.functions[functions[at].index] = std::move(function);
    }
    for (size_t at = 0; at < variables.size(); ++at) {
      if (variables[at].taken) {
        result_.variables[variables[at].index] = std::move(module.variables[at]);
      }
    }
    add_source(module);
    return true;
  }

  Module take() { return std::move(result_); }
  const std::string& fault() const { return fault_; }

 private:
  /// Where an item of the present module is in the result, and whether it is the one put there.
  struct Place {
    uint32_t index = 0;
    bool taken = false;
  };
  using Indices = std::map<std::string, uint32_t>;

  template <class Item>
  void reserve(const Item& item) {
    if (!is_local(item)) names_.insert(item.name);
  }

  /// Gives items that other modules cannot see names that nothing else has.
  void rename_locals(Module& module) {
    std::map<std::string, std::string> renamed;
    auto rename = [&](auto& item) {
      if (!is_local(item)) return;
      std::string name = item.name;
      while (!names_.insert(name).second) name = fmt::format("{}${}", item.name, ++last_suffix_);
      if (name != item.name) renamed[item.name] = name;
      item.name = name;
    };
    for (Variable& variable : module.variables) rename(variable);
    for (Function& function : module.functions) rename(function);
    if (renamed.empty()) return;
    for (Variable& variable : module.variables) {
      for (Variable::Fixup& fixup : variable.fixups) {
        auto found = renamed.find(fixup.symbol);
        if (found != renamed.end()) fixup.symbol = found->second;
      }
    }
  }

  template <class Item>
  bool place(const Item& item, std::vector<Item>& items, Indices& indices, const Indices& others,
             std::vector<Place>& places) {
    auto [found, is_new] = indices.try_emplace(item.name, static_cast<uint32_t>(items.size()));
    Place place{found->second, is_new};
    if (others.count(item.name) > 0) return refuse(item.name, "is a function and a variable");
    if (is_new) {
      // Its name and linkage are looked at before the content comes.
      Item head;
      head.name = item.name;
      items.push_back(std::move(head));
      copy_head(item, items.back());
    } else {
      Item& earlier = items[place.index];
      std::string reason = mismatch(earlier, item);
      if (!reason.empty()) return refuse(item.name, reason);
      bool both_defined = !earlier.is_extern && !item.is_extern;
      if (both_defined && !earlier.is_weak && !item.is_weak) {
        return refuse(item.name, "is defined twice");
      }
      place.taken = !item.is_extern && (earlier.is_extern || (earlier.is_weak && !item.is_weak));
      if (place.taken) copy_head(item, earlier);
    }
    places.push_back(place);
    return true;
  }

  static void copy_head(const Variable& from, Variable& to) {
    to.space = from.space;
    to.bytes = from.bytes;
    to.is_extern = from.is_extern;
    to.is_weak = from.is_weak;
  }
  static void copy_head(const Function& from, Function& to) {
    to.is_entry = from.is_entry;
    to.is_extern = from.is_extern;
    to.is_weak = from.is_weak;
    to.parameters = from.parameters;
    to.return_values = from.return_values;
  }

  // The parser bounds the nesting.
  void remap(Operand& operand, const std::vector<Place>& variables,
             const std::vector<Place>& functions) {
    if (operand.symbol == Operand::Symbol::kModuleVariable) {
      operand.symbol_index =
          static_cast<int32_t>(variables[static_cast<size_t>(operand.symbol_index)].index);
    } else if (operand.symbol == Operand::Symbol::kFunction) {
      operand.symbol_index =
          static_cast<int32_t>(functions[static_cast<size_t>(operand.symbol_index)].index);
    }
    for (Operand& element : operand.elements) remap(element, variables, functions);
  }

  void add_source(const Module& module) {
    auto files = static_cast<uint32_t>(result_.files.size());
    auto locations = static_cast<int32_t>(result_.locations.size());
    result_.files.insert(result_.files.end(), module.files.begin(), module.files.end());
    for (Location location : module.locations) {
      if (location.file != 0) location.file += files;
      if (location.inlined_at >= 0) location.inlined_at += locations;
      result_.locations.push_back(location);
    }
    if (std::pair(module.version_major, module.version_minor) >
        std::pair(result_.version_major, result_.version_minor)) {
      result_.version_major = module.version_major;
      result_.version_minor = module.version_minor;
    }
    if (result_.target.empty()) result_.target = module.target;
  }

  bool refuse(const std::string& name, const std::string& reason) {
    fault_ = fmt::format("link: {} {}", quoted(name), reason);
    return false;
  }

  Module result_;
  Indices variable_indices_, function_indices_;
  std::set<std::string> names_;
  uint64_t last_suffix_ = 0;
  std::string fault_;
};

/// What the driver links into every module: formatted output, assertions, the heap, and the
/// runtime on the device, of which decoding says by name what it does not have.
bool is_provided(const std::string& name) {
  static const std::set<std::string> kNames = {"vprintf", "__assertfail", "malloc", "free"};
  return kNames.count(name) > 0 || name.rfind("cuda", 0) == 0 || name.rfind("__cuda", 0) == 0;
}

std::optional<std::string> missing(const Module& module, const Operand& operand) {
  auto index = static_cast<size_t>(operand.symbol_index);
  if (operand.symbol == Operand::Symbol::kModuleVariable) {
    const Variable& variable = module.variables[index];
    if (variable.is_extern && variable.space != Space::kShared) {
      return fmt::format("variable {} is not defined", quoted(variable.name));
    }
  } else if (operand.symbol == Operand::Symbol::kFunction) {
    const Function& function = module.functions[index];
    if (function.is_extern && !is_provided(function.name)) {
      return fmt::format("function {} is not defined", quoted(function.name));
    }
  }
  for (const Operand& element : operand.elements) {
    if (auto found = missing(module, element)) return found;
  }
  return std::nullopt;
}

}  // namespace

Result<Module> link(std::vector<Module> modules) {
  Linker linker(modules);
  for (Module& module : modules) {
    if (!linker.add(std::move(module))) return failure(ErrorCode::kConfig, linker.fault());
  }
  return linker.take();
}

std::string unresolved(const Module& module) {
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body) {
      for (const Operand& operand : instruction.operands) {
        if (auto found = missing(module, operand)) {
          return fmt::format("ptx:{}: {}", instruction.text_line, *found);
        }
      }
    }
  }
  std::set<std::string> declared;
  for (const Variable& variable : module.variables) {
    if (variable.is_extern) declared.insert(variable.name);
  }
  for (const Function& function : module.functions) {
    if (function.is_extern && !is_provided(function.name)) declared.insert(function.name);
  }
  for (const Variable& variable : module.variables) {
    for (const Variable::Fixup& fixup : variable.fixups) {
      if (declared.count(fixup.symbol) == 0) continue;
      return fmt::format("ptx: the initial value of {} needs {}, which is not defined",
                         quoted(variable.name), quoted(fixup.symbol));
    }
  }
  return "";
}

}  // namespace cb::ptx
