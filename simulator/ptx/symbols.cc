#include "simulator/ptx/symbols.h"

#include <bit>
#include <cstring>
#include <random>

namespace cb::ptx {
namespace {

// Each name has a chain of bindings, innermost first, and the scopes have lists of the bindings to
// undo. A range `%r<9>` is one entry in the chain of its prefix; a register of it gets a binding in
// the range's scope when it is first used, which hides nothing, since a binding further in would
// have been found before.

struct Key {
  uint64_t low, high;
};

Key draw_key() {
  std::random_device device;
  auto draw = [&] { return uint64_t{device()} << 32 | device(); };
  return {draw(), draw()};
}

struct SipState {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
};

}  // namespace

size_t NameHash::operator()(std::string_view name) const {
  static const Key key = draw_key();
  SipState state{key.low ^ 0x736f6d6570736575ull, key.high ^ 0x646f72616e646f6dull,
                 key.low ^ 0x6c7967656e657261ull, key.high ^ 0x7465646279746573ull};
  size_t position = 0;
  for (; position + 8 <= name.size(); position += 8) {
    uint64_t word;
    std::memcpy(&word, name.data() + position, 8);
    state.v3 ^= word;
    state.round();
    state.v0 ^= word;
  }
  uint64_t last = uint64_t{name.size()} << 56;
  for (size_t i = 0; position + i < name.size(); ++i) {
    last |= uint64_t{static_cast<unsigned char>(name[position + i])} << (8 * i);
  }
  state.v3 ^= last;
  state.round();
  state.v0 ^= last;
  state.v2 ^= 0xff;
  for (int i = 0; i < 3; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

Symbols::Name Symbols::intern(std::string_view name) {
  auto [place, is_new] = names_.try_emplace(name, static_cast<Name>(entries_.size()));
  if (is_new) entries_.emplace_back();
  return place->second;
}

void Symbols::close_scope() {
  for (int32_t index : scopes_.back()) {
    entries_[bounds_[index].name].bound = bounds_[index].outer;
    free_bounds_.push_back(index);
  }
  while (!ranges_.empty() && ranges_.back().depth == depth()) {
    entries_[ranges_.back().prefix].range = ranges_.back().outer;
    ranges_.pop_back();
  }
  scopes_.pop_back();
}

int32_t Symbols::new_bound(Bound bound) {
  scopes_[bound.depth].push_back(0);
  int32_t& index = scopes_[bound.depth].back();
  if (free_bounds_.empty()) {
    index = static_cast<int32_t>(bounds_.size());
    bounds_.push_back(bound);
  } else {
    index = free_bounds_.back();
    free_bounds_.pop_back();
    bounds_[index] = bound;
  }
  return index;
}

void Symbols::bind(Name name, Binding binding, uint32_t depth) {
  entries_[name].bound = new_bound({binding, depth, name, entries_[name].bound});
}

void Symbols::declare_global(std::string_view text, Binding binding) {
  Name name = intern(text);
  int32_t index = new_bound({binding, 0, name, -1});
  int32_t* link = &entries_[name].bound;
  while (*link >= 0) link = &bounds_[*link].outer;
  *link = index;
}

bool Symbols::declare(std::string_view text, Binding binding) {
  Name name = intern(text);
  int32_t innermost = entries_[name].bound;
  if (innermost >= 0 && bounds_[innermost].depth == depth()) return false;
  const Range* range = find_range(text);
  if (range != nullptr && range->depth == depth()) return false;
  bind(name, binding, static_cast<uint32_t>(depth()));
  return true;
}

bool Symbols::declare_range(std::string_view prefix, Type type, uint32_t count) {
  Name name = intern(prefix);
  int32_t innermost = entries_[name].range;
  if (innermost >= 0 && ranges_[innermost].depth == depth()) return false;
  entries_[name].range = static_cast<int32_t>(ranges_.size());
  ranges_.push_back({type, count, static_cast<uint32_t>(depth()), name, innermost});
  return true;
}

const Symbols::Range* Symbols::range_of(std::string_view prefix, uint32_t number) const {
  auto name = names_.find(prefix);
  if (name == names_.end()) return nullptr;
  for (int32_t index = entries_[name->second].range; index >= 0; index = ranges_[index].outer) {
    if (number < ranges_[index].count) return &ranges_[index];
  }
  return nullptr;
}

// `%r12` may come of `%r<13>` and of `%r1<3>`: every way to end the prefix is tried.
const Symbols::Range* Symbols::find_range(std::string_view name) const {
  if (ranges_.empty()) return nullptr;
  const Range* best = nullptr;
  uint32_t number = 0;
  uint32_t power = 1;
  for (size_t digits = 1; digits <= 8 && digits < name.size(); ++digits, power *= 10) {
    char c = name[name.size() - digits];
    if (c < '0' || c > '9') break;
    number += power * static_cast<uint32_t>(c - '0');
    if (c == '0' && digits > 1) continue;
    const Range* range = range_of(name.substr(0, name.size() - digits), number);
    if (range != nullptr && (best == nullptr || range->depth > best->depth)) best = range;
  }
  return best;
}

std::optional<Binding> Symbols::find(std::string_view text, std::vector<Register>& registers) {
  Name name = intern(text);
  int32_t innermost = entries_[name].bound;
  if (innermost >= 0 && (ranges_.empty() || bounds_[innermost].depth >= ranges_.back().depth)) {
    return bounds_[innermost].binding;
  }
  const Range* range = find_range(text);
  if (range != nullptr && (innermost < 0 || range->depth > bounds_[innermost].depth)) {
    registers.push_back({std::string(text), range->type});
    Binding binding{Binding::Kind::kRegister, static_cast<int32_t>(registers.size() - 1)};
    bind(name, binding, range->depth);
    return binding;
  }
  if (innermost < 0) return std::nullopt;
  return bounds_[innermost].binding;
}

std::optional<Binding> Symbols::find_global(std::string_view text) const {
  auto name = names_.find(text);
  if (name == names_.end()) return std::nullopt;
  for (int32_t index = entries_[name->second].bound; index >= 0; index = bounds_[index].outer) {
    if (bounds_[index].depth == 0) return bounds_[index].binding;
  }
  return std::nullopt;
}

}  // namespace cb::ptx
