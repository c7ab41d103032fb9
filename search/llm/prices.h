#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/llm/completion.h"

namespace cb::llm {

/// US dollars for a million tokens.
struct Price {
  std::string model;  ///< "provider/model"; an entry also holds for dated versions MODEL-YYYY...
  double input = 0;
  std::optional<double> cached;       ///< nothing: cached tokens cost as much as others
  std::optional<double> cache_write;  ///< likewise
  double output = 0;
  std::string as_of;   ///< YYYY-MM-DD
  std::string source;  ///< where it was read
};

/// A table that a person keeps (YAML); there is no price without a date and a source.
class PriceTable {
 public:
  /// An empty table: no price is known.
  PriceTable() = default;
  /// Throws Error(kConfig) with file and line.
  static PriceTable load_file(const std::string& path);
  static PriceTable load_text(const std::string& text, const std::string& name);

  /// The entry that fits best; nothing when the model is not in the table.
  const Price* find(const std::string& model) const;
  const std::vector<Price>& entries() const { return entries_; }

 private:
  std::vector<Price> entries_;
};

/// What a reply cost; nothing where the price is not known or the provider did not count.
std::optional<double> cost_usd(const Price* price, const Usage& usage);

}  // namespace cb::llm
