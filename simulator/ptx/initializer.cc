#include "simulator/ptx/initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "simulator/ptx/constant.h"

namespace cb::ptx {
namespace {

// Values are stored as they are met, at offsets from the dimensions, so that rows cut short leave
// zeros and trailing zeros take no memory. Addresses become fixups, with zeros in their place.

class Initializer {
 public:
  Initializer(ParserContext& context, const std::vector<uint64_t>& dimensions, Variable& variable)
      : context_(context),
        cursor_(context.cursor),
        dimensions_(dimensions),
        variable_(variable),
        element_bytes_(bytes_of(variable.type)),
        strides_(dimensions.size()) {
    uint64_t stride = element_bytes_;
    for (size_t level = dimensions.size(); level-- > 0; stride *= dimensions[level]) {
      strides_[level] = stride;
    }
  }

  bool parse() {
    if (dimensions_.empty()) return value(0);
    if (!level(0, 0)) return false;
    if (dimensions_[0] == 0) variable_.bytes = outermost_count_ * strides_[0];
    return true;
  }

 private:
  // Recursion is bounded by the number of dimensions.
  bool level(size_t depth, uint64_t offset) {
    if (!cursor_.expect('{', "the dimensions so far")) return false;
    uint64_t count = 0;
    bool is_open_ended = depth == 0 && dimensions_[0] == 0;
    while (!cursor_.accept('}')) {
      if (count > 0 && !cursor_.expect(',', "an initial value")) return false;
      if (count >= dimensions_[depth] && !is_open_ended) {
        return cursor_.fail(fmt::format("{} has more initial values than its {} elements",
                                        quoted(variable_.name), dimensions_[depth]));
      }
      if (static_cast<unsigned __int128>(count + 1) * strides_[depth] > kMaxVariableBytes) {
        return cursor_.fail(fmt::format("variable {} is larger than {} bytes",
                                        quoted(variable_.name), kMaxVariableBytes));
      }
      uint64_t place = offset + count * strides_[depth];
      bool ok = depth + 1 == dimensions_.size() ? value(place) : level(depth + 1, place);
      if (!ok) return false;
      ++count;
    }
    if (depth == 0) outermost_count_ = count;
    return !cursor_.error();
  }

  bool value(uint64_t offset) {
    bool is_name = cursor_.is(TokenKind::kIdentifier) && cursor_.token().text != "WARP_SZ";
    if (is_name && element_bytes_ < 4) {
      return cursor_.fail(fmt::format("an address does not fit in .{}", name_of(variable_.type)));
    }
    if (is_name) return address(offset, 0, element_bytes_);
    Constant constant;
    if (!parse_constant(cursor_, context_.limits.nesting, constant)) return false;
    if (cursor_.accept('(')) {
      return masked_address(offset, constant) && cursor_.expect(')', "the address of a mask");
    }
    return store(offset, constant);
  }

  // `0xFF00(x)` is byte 1 of the address of x.
  bool masked_address(uint64_t offset, const Constant& mask) {
    auto shift = static_cast<unsigned>(std::countr_zero(mask.bits));
    if (mask.is_float || shift % 8 != 0 || mask.bits >> (shift % 64) != 0xff ||
        element_bytes_ != 1) {
      return cursor_.fail(
          "a mask of an address must select one byte (0xFF, 0xFF00, ...) for an "
          "element of one byte");
    }
    return address(offset, shift, 1);
  }

  bool address(uint64_t offset, unsigned shift_bits, unsigned bytes) {
    Variable::Fixup fixup;
    fixup.offset = offset;
    fixup.bytes = bytes;
    fixup.shift_bits = shift_bits;
    std::string_view name;
    if (!cursor_.identifier(name, "a variable or function")) return false;
    if (name == "generic" && cursor_.accept('(')) {
      fixup.generic = true;
      if (!cursor_.identifier(name, "a variable or function")) return false;
      if (!cursor_.expect(')', "generic(...")) return false;
    }
    fixup.symbol = name;
    if (cursor_.is('+') || cursor_.is('-')) {
      Constant addend;
      if (!parse_constant(cursor_, context_.limits.nesting, addend)) return false;
      if (addend.is_float) return cursor_.fail("a floating-point offset of an address");
      fixup.addend = static_cast<int64_t>(addend.bits);
    }
    if (!extend(offset + bytes)) return false;
    variable_.fixups.push_back(std::move(fixup));
    return true;
  }

  bool store(uint64_t offset, const Constant& constant) {
    uint64_t bits = constant.bits;
    switch (variable_.type) {
      case Type::kF32:
        bits = constant.is_single ? constant.bits
                                  : std::bit_cast<uint32_t>(static_cast<float>(constant.number()));
        break;
      case Type::kF64:
        bits = std::bit_cast<uint64_t>(constant.number());
        break;
      case Type::kB128:
      case Type::kF16:
      case Type::kF16x2:
      case Type::kBf16:
      case Type::kBf16x2:
        return cursor_.fail(
            fmt::format("initial values of type .{} are not supported", name_of(variable_.type)));
      default:
        if (constant.is_float) {
          return cursor_.fail(
              fmt::format("a floating-point initial value for type .{}", name_of(variable_.type)));
        }
    }
    if (!extend(offset + element_bytes_)) return false;
    std::memcpy(variable_.initial.data() + offset, &bits, element_bytes_);
    return true;
  }

  bool extend(uint64_t bytes) {
    std::vector<uint8_t>& initial = variable_.initial;
    if (bytes <= initial.size()) return true;
    uint64_t growth = bytes - initial.size();
    if (growth > context_.limits.initial_bytes - context_.initial_bytes) {
      return cursor_.fail(fmt::format("initial values exceed the limit of {} bytes",
                                      context_.limits.initial_bytes));
    }
    context_.initial_bytes += growth;
    initial.resize(bytes);
    return true;
  }

  ParserContext& context_;
  Cursor& cursor_;
  const std::vector<uint64_t>& dimensions_;
  Variable& variable_;
  unsigned element_bytes_;
  std::vector<uint64_t> strides_;
  uint64_t outermost_count_ = 0;
};

}  // namespace

bool parse_initializer(ParserContext& context, const std::vector<uint64_t>& dimensions,
                       Variable& variable) {
  return Initializer(context, dimensions, variable).parse();
}

}  // namespace cb::ptx
