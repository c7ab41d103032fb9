#include "simulator/ptx/module.h"

#include <algorithm>
#include <array>

namespace cb::ptx {
namespace {

struct TypeInfo {
  std::string_view name;
  unsigned bytes;
};

// In the order of Type.
constexpr std::array<TypeInfo, 22> kTypes = {{
    {"none", 0}, {"b8", 1},  {"b16", 2},  {"b32", 4},   {"b64", 8},  {"b128", 16},
    {"u8", 1},   {"u16", 2}, {"u32", 4},  {"u64", 8},   {"s8", 1},   {"s16", 2},
    {"s32", 4},  {"s64", 8}, {"f16", 2},  {"f16x2", 4}, {"bf16", 2}, {"bf16x2", 4},
    {"f32", 4},  {"f64", 8}, {"pred", 0}, {"other", 0},
}};

}  // namespace

unsigned bytes_of(Type type) { return kTypes[static_cast<size_t>(type)].bytes; }

const char* name_of(Type type) { return kTypes[static_cast<size_t>(type)].name.data(); }

Type type_from_name(std::string_view name) {
  for (size_t i = 1; i + 1 < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return Type::kNone;
}

bool Instruction::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::full_name() const {
  std::string name = opcode;
  for (const std::string& modifier : modifiers) name.append(1, '.').append(modifier);
  return name;
}

const Function* Module::find_function(std::string_view name) const {
  auto found = std::find_if(functions.begin(), functions.end(),
                            [&](const Function& function) { return function.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

const Variable* Module::find_variable(std::string_view name) const {
  auto found = std::find_if(variables.begin(), variables.end(),
                            [&](const Variable& variable) { return variable.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

}  // namespace cb::ptx
