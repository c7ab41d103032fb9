#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/ptx/cursor.h"
#include "simulator/ptx/module.h"
#include "simulator/ptx/symbols.h"

namespace cb::ptx {

/// The labels of one function after the other. A label is visible in its whole scope and the scopes
/// inside, also before its definition, so references are settled when the body has ended: scopes,
/// definitions and references are recorded in order and replayed once, in time linear in their
/// number.
class Labels {
 public:
  /// What a label marks, and what a reference asks for.
  enum class Kind : uint8_t {
    kInstruction,  ///< `index` = instruction
    kTable,        ///< `.branchtargets`; `index` = branch table
    kPrototype     ///< `.callprototype`; `index` = prototype_keys()
  };

  explicit Labels(Symbols& symbols) : symbols_(symbols) {}

  /// Forgets the labels of the function before.
  void clear();
  void open_scope();
  void close_scope();
  void define(std::string_view name, Kind kind, uint32_t index, uint32_t line);

  /// The operand `operand` of the instruction `instruction` names a label of this kind.
  void refer(std::string_view name, Kind kind, uint32_t instruction, uint32_t operand,
             uint32_t line);
  /// Entry `position` of the branch table `table` names an instruction.
  void refer_from_table(std::string_view name, uint32_t table, uint32_t position, uint32_t line);

  /// A key for a prototype, unique in the function even if sibling scopes reuse the name.
  std::string add_prototype(std::string_view name, const Function& function);
  uint32_t prototype_count() const { return static_cast<uint32_t>(prototype_keys_.size()); }

  /// Writes what every reference names into `function`. Fails at `cursor` on a label defined twice
  /// in a scope, missing, or of another kind.
  bool settle(Function& function, Cursor& cursor);

 private:
  struct Definition {
    std::string_view name;
    Symbols::Name id = 0;
    Kind kind = Kind::kInstruction;
    uint32_t index = 0;
    uint32_t line = 0;
    int32_t next = -1;   ///< in the same scope
    int32_t outer = -1;  ///< the meaning of the name outside, during the replay
    int32_t scope = -1;
  };
  struct Reference {
    std::string_view name;
    Symbols::Name id = 0;
    Kind kind = Kind::kInstruction;
    bool from_table = false;
    uint32_t owner = 0;     ///< instruction or table
    uint32_t position = 0;  ///< operand or table entry
    uint32_t line = 0;
  };
  struct Event {
    enum class Kind : uint8_t { kOpen, kClose, kReference } kind;
    int32_t index;  ///< scope or reference
  };

  bool open_in_replay(int32_t scope, Cursor& cursor);
  bool write(const Reference& reference, Function& function, Cursor& cursor) const;

  Symbols& symbols_;
  std::vector<int32_t> first_definition_;  ///< by scope
  std::vector<int32_t> open_scopes_;
  std::vector<Definition> definitions_;
  std::vector<Reference> references_;
  std::vector<Event> events_;
  std::vector<std::string> prototype_keys_;
  /// By name, the innermost definition during a replay, else -1. It outlives clear(): its length is
  /// that of all names of the module.
  std::vector<int32_t> meaning_;
};

}  // namespace cb::ptx
