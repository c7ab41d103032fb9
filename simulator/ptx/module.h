#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

/// The PTX front end: text to a resolved syntax tree. Nothing here knows how code is executed.
namespace cb::ptx {

/// Fundamental types of PTX (ISA 9.0, section 5.2). kNone where an operand has no type.
enum class Type : uint8_t {
  kNone,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kPred,
  kOther
};

/// Size in bytes; 0 for kNone, kPred and kOther.
unsigned bytes_of(Type type);
/// ".f32" and so on without the dot; empty when the text names no type.
Type type_from_name(std::string_view name);
const char* name_of(Type type);

enum class Space : uint8_t { kNone, kReg, kConst, kGlobal, kLocal, kParam, kShared };

/// Where in the CUDA source a piece of PTX came from (-lineinfo); file 0 means unknown. With
/// inlining, `inlined_at` is an index into Module::locations of the call site, or -1.
struct Location {
  uint32_t file = 0;
  uint32_t line = 0;
  int32_t inlined_at = -1;
};

/// A virtual register of one function. Nested scopes may reuse a name; each gets its own index.
struct Register {
  std::string name;
  Type type = Type::kNone;
};

/// A variable with an address: module globals and constants, shared and local arrays, and the
/// byte-array or scalar variables of the .param space (kernel parameters, call arguments).
struct Variable {
  std::string name;
  Space space = Space::kNone;
  Type type = Type::kNone;
  uint32_t align = 1;
  uint64_t bytes = 0;  ///< 0 for `extern .shared x[]`
  bool is_extern = false;
  bool is_visible = false;
  bool is_weak = false;
  bool is_managed = false;  ///< `.attribute(.managed)`: the host may touch it too
  /// Initial content, shorter than `bytes` when the rest is zero.
  std::vector<uint8_t> initial;
  /// Addresses of other symbols to store into the initial content, as `generic(x)+8` gives.
  struct Fixup {
    uint64_t offset = 0;  ///< into this variable
    std::string symbol;   ///< variable or function of the module
    int64_t addend = 0;
    bool generic = false;
    unsigned bytes = 8;
    unsigned shift_bits = 0;  ///< stores the address shifted right, as `0xFF00(x)` gives byte 1
  };
  std::vector<Fixup> fixups;
};

/// An instruction operand.
struct Operand {
  enum class Kind : uint8_t {
    kRegister,   ///< `reg`; `name`: the part of a video instruction, such as "h1", mostly empty
    kImmediate,  ///< `bits`: integers sign-extended to 64 bits, floats as their own bit pattern
    kSpecial,    ///< special register; `name` with the dot part, such as "%tid.x", "%clock64";
                 ///< without it in `mov.v4`
    kVariable,   ///< address of a variable (or function) + `offset`; `name`, resolved by scope
    kMemory,     ///< [base + offset]: base is `reg`, or `variable`/`name`, or absent
    kVector,     ///< {a, b, ...} in `elements`
    kLabel,      ///< branch target; `bits` = index of the target instruction, body.size() = return
    kSink,       ///< `_`
    kPair,       ///< `p|q` in `elements`
    kList,       ///< (a, b, ...) of a call, in `elements`
    kCoordinates,  ///< [tensorMap, {c0, c1, ...}]: `elements` = kMemory, then the others (kVector)
    kBranchTable   ///< the list of `brx.idx`; `bits` = index into Function::branch_tables
  };
  /// What the `name` of a kVariable or kMemory operand is. Names alone are ambiguous, since nested
  /// scopes may reuse them; `symbol_index` is exact.
  enum class Symbol : uint8_t {
    kNone,
    kModuleVariable,    ///< Module::variables
    kFunctionVariable,  ///< Function::variables
    kParameter,         ///< Function::parameters
    kReturnValue,       ///< Function::return_values
    kFunction,          ///< Module::functions
    kPrototype          ///< `name` is a key of Function::prototypes; no index
  };
  Kind kind = Kind::kImmediate;
  Symbol symbol = Symbol::kNone;
  bool negated = false;       ///< `!p` of a predicate operand, `-a` of a video instruction
  bool is_float = false;      ///< immediate written as float: 32-bit pattern if `!is_double`
  bool is_double = false;     ///< 0d... or a decimal float literal: 64-bit pattern in `bits`
  int32_t reg = -1;           ///< index into Function::registers
  int32_t symbol_index = -1;  ///< index into what `symbol` names
  int64_t offset = 0;
  uint64_t bits = 0;
  std::string name;
  std::vector<Operand> elements;
};

/// One instruction. A call has the operands kList of return values, callee (kVariable of a function
/// or kRegister), kList of arguments and, if indirect, kVariable of its prototype. `opcode` is the
/// part before the first dot, `modifiers` the dotted parts in order without dots ("sys", "u32";
/// `L1::no_allocate` stays one word).
struct Instruction {
  std::string opcode;
  std::vector<std::string> modifiers;
  std::vector<Operand> operands;
  int32_t guard = -1;  ///< predicate register index, -1 none
  bool guard_negated = false;
  int32_t location = -1;   ///< index into Module::locations, -1 unknown
  uint32_t text_line = 0;  ///< line in the PTX text, from 1

  bool has(std::string_view modifier) const;
  /// The opcode with all modifiers, as written: "ld.acquire.sys.global.u32".
  std::string full_name() const;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_extern = false;  ///< declaration only (vprintf, __assertfail, or resolved by name)
  bool is_visible = false;
  bool is_weak = false;
  int32_t alias_of = -1;             ///< `.alias`: index of the function that it is another name of
  std::vector<Variable> parameters;  ///< .param space, in order
  std::vector<Variable> return_values;
  std::vector<Register> registers;  ///< of a `%r<9>`, those that are used
  std::vector<Variable> variables;  ///< .local, .shared and .param variables of the body
  std::vector<Instruction> body;
  /// Call prototypes by label, for indirect calls: parameter and return sizes in order.
  struct Prototype {
    std::vector<Variable> parameters;
    std::vector<Variable> return_values;
  };
  std::map<std::string, Prototype> prototypes;
  /// Targets of `brx.idx` by `.branchtargets`: instruction indices as in kLabel.
  std::vector<std::vector<uint32_t>> branch_tables;
  /// Performance directives; 0 when absent.
  uint32_t max_threads[3] = {0, 0, 0};       ///< .maxntid
  uint32_t required_threads[3] = {0, 0, 0};  ///< .reqntid
  uint32_t min_blocks_per_sm = 0;            ///< .minnctapersm
  uint32_t max_registers = 0;                ///< .maxnreg
  uint32_t required_cluster[3] = {0, 0, 0};  ///< .reqnctapercluster
  uint32_t max_cluster_blocks = 0;           ///< .maxclusterrank
  bool explicit_cluster = false;             ///< .explicitcluster
  bool no_return = false;                    ///< .noreturn
  std::vector<std::string> pragmas;
};

struct Module {
  unsigned version_major = 0;
  unsigned version_minor = 0;
  std::string target;              ///< "sm_90a"
  std::vector<std::string> files;  ///< by .file index; [0] is empty
  std::vector<Location> locations;
  std::vector<Variable> variables;  ///< module-scope
  std::vector<Function> functions;  ///< a definition replaces an earlier declaration

  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;
};

/// Limits that keep hostile text from exhausting its reader.
struct ParseLimits {
  size_t text_bytes = size_t{64} << 20;
  size_t instructions = size_t{8} << 20;
  size_t operands = size_t{24} << 20;        ///< of all instructions, nested ones included
  size_t initial_bytes = size_t{256} << 20;  ///< of all initialised variables
  size_t registers_per_function = 1 << 20;
  size_t nesting = 256;
};

/// The newest PTX ISA that parse() takes.
inline constexpr unsigned kNewestVersion[2] = {9, 0};

/// Parses a whole module. Safe on hostile text: any input gives a Module or an Error(kConfig)
/// that names the PTX line ("ptx:12: ..."); no unbounded recursion, time linear in the text.
/// Every name is resolved: unknown registers, labels and variables are errors. Opcodes are not
/// checked here: decoding refuses by name what it does not know.
Result<Module> parse(std::string_view text, const ParseLimits& limits = {});

}  // namespace cb::ptx
