#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace cb::ptx {

/// Damages real input in the ways that matter to a parser: bytes flipped, parts removed, repeated
/// or moved, and `tokens` inserted. The same seed gives the same mutations.
class Mutator {
 public:
  Mutator(uint64_t seed, std::vector<std::string> tokens)
      : random_(seed), tokens_(std::move(tokens)) {}

  std::string mutate(std::string text) {
    uint64_t count = 1 + draw(4);
    for (uint64_t i = 0; i < count && !text.empty(); ++i) mutate_once(text);
    return text;
  }

 private:
  uint64_t draw(uint64_t bound) { return random_.below(next_++, bound); }

  void mutate_once(std::string& text) {
    size_t place = draw(text.size());
    size_t length = std::min<size_t>(draw(64), text.size() - place);
    switch (draw(6)) {
      case 0:
        text[place] = static_cast<char>(draw(256));
        break;
      case 1:
        text[place] = static_cast<char>(text[place] ^ (1 << draw(8)));
        break;
      case 2:
        text.erase(place, length);
        break;
      case 3:
        text.insert(place, text.substr(draw(text.size()), length));
        break;
      case 4:
        text.insert(place, tokens_[draw(tokens_.size())]);
        break;
      default:
        if (draw(8) == 0) text.resize(place);
    }
  }

  CounterRandom random_;
  uint64_t next_ = 0;
  std::vector<std::string> tokens_;
};

}  // namespace cb::ptx
