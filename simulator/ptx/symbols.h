#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulator/ptx/module.h"

namespace cb::ptx {

/// SipHash-1-3 with a key drawn once per process: names of hostile text cannot be chosen to
/// collide.
struct NameHash {
  size_t operator()(std::string_view name) const;
};

/// What a name means at a point of the text.
struct Binding {
  enum class Kind : uint8_t {
    kRegister,
    kModuleVariable,
    kFunctionVariable,
    kParameter,
    kReturnValue,
    kFunction
  };
  Kind kind = Kind::kRegister;
  int32_t index = -1;  ///< into the vector of the module or function that the kind names
};

/// The scopes of registers, variables and functions. Depth 0 is the module; a function adds one
/// scope, and each `{ }` of its body another. A name costs one hash look-up however deep the
/// nesting: each name carries the stack of its bindings.
class Symbols {
 public:
  using Name = uint32_t;

  /// A number for the name, the same for equal names. Keeps a view of `name`.
  Name intern(std::string_view name);

  size_t depth() const { return scopes_.size() - 1; }
  void open_scope() { scopes_.emplace_back(); }
  void close_scope();

  /// False if the scope has the name already.
  bool declare(std::string_view name, Binding binding);
  /// Declares the name at module level, which must not have it, from within any scope.
  void declare_global(std::string_view name, Binding binding);
  /// Declares `prefix`0 ... `prefix``count - 1`. False if the scope has the prefix already.
  bool declare_range(std::string_view prefix, Type type, uint32_t count);

  /// The innermost meaning of `name`. A register of a range is appended to `registers` when it is
  /// first found, so that `.reg .b32 %r<1000000>` costs nothing.
  std::optional<Binding> find(std::string_view name, std::vector<Register>& registers);
  /// The meaning at module level, whatever the present scope.
  std::optional<Binding> find_global(std::string_view name) const;

 private:
  struct Bound {
    Binding binding;
    uint32_t depth = 0;
    Name name = 0;
    int32_t outer = -1;  ///< the next binding of the name outwards
  };
  struct Range {
    Type type = Type::kNone;
    uint32_t count = 0;
    uint32_t depth = 0;
    Name prefix = 0;
    int32_t outer = -1;
  };
  struct Entry {
    int32_t bound = -1;  ///< innermost in bounds_
    int32_t range = -1;  ///< innermost in ranges_ that has this name as prefix
  };

  int32_t new_bound(Bound bound);
  void bind(Name name, Binding binding, uint32_t depth);
  const Range* find_range(std::string_view name) const;
  const Range* range_of(std::string_view prefix, uint32_t number) const;

  std::unordered_map<std::string_view, Name, NameHash> names_;
  std::vector<Entry> entries_;
  std::vector<Bound> bounds_;
  std::vector<int32_t> free_bounds_;
  std::vector<Range> ranges_;                    ///< outermost first, those of open scopes only
  std::vector<std::vector<int32_t>> scopes_{1};  ///< by depth, the bindings to undo
};

}  // namespace cb::ptx
