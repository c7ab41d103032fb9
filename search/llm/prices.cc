#include "search/llm/prices.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/yaml.h"

namespace cb::llm {
namespace {

bool is_date(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0 || c == '-'; });
}

double dollars(const Yaml& yaml) {
  double value = yaml.number();
  if (!(value >= 0 && value < 1e6)) throw yaml.error("a price in USD per million tokens");
  return value;
}

Price read_price(const Yaml& yaml) {
  Price price;
  price.model = yaml.at("model").text();
  if (price.model.find('/') == std::string::npos) {
    throw yaml.at("model").error("a model is provider/name");
  }
  price.input = dollars(yaml.at("input"));
  if (auto cached = yaml.find("cached")) price.cached = dollars(*cached);
  if (auto cache_write = yaml.find("cache_write")) price.cache_write = dollars(*cache_write);
  price.output = dollars(yaml.at("output"));
  price.as_of = yaml.at("as_of").text();
  if (!is_date(price.as_of)) throw yaml.at("as_of").error("a date is YYYY-MM-DD");
  price.source = yaml.at("source").text();
  return price;
}

/// Whether `model` is `entry` or a version of it that carries a date: NAME-2026-05-01,
/// NAME-20260501.
bool covers(const std::string& entry, const std::string& model) {
  if (model.rfind(entry, 0) != 0) return false;
  std::string rest = model.substr(entry.size());
  if (rest.empty()) return true;
  if (rest.size() < 5 || rest[0] != '-') return false;
  return std::all_of(rest.begin(), rest.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0 || c == '-'; });
}

}  // namespace

PriceTable PriceTable::load_text(const std::string& text, const std::string& name) {
  Yaml yaml = Yaml::load_text(text, name);
  PriceTable table;
  for (const Yaml& entry : yaml.at("prices").items()) {
    Price price = read_price(entry);
    for (const Price& earlier : table.entries_) {
      if (earlier.model == price.model) throw entry.error("a second price of " + price.model);
    }
    table.entries_.push_back(std::move(price));
  }
  yaml.finish();
  return table;
}

PriceTable PriceTable::load_file(const std::string& path) {
  return load_text(value_or_throw(read_file(path)), path);
}

const Price* PriceTable::find(const std::string& model) const {
  const Price* best = nullptr;
  for (const Price& price : entries_) {
    if (!covers(price.model, model)) continue;
    if (best == nullptr || price.model.size() > best->model.size()) best = &price;
  }
  return best;
}

std::optional<double> cost_usd(const Price* price, const Usage& usage) {
  if (price == nullptr || !usage.input || !usage.output) return std::nullopt;
  auto cached = static_cast<double>(std::min(usage.cached.value_or(0), *usage.input));
  auto written = static_cast<double>(std::min(usage.cache_write.value_or(0), *usage.input));
  double fresh = std::max(0.0, static_cast<double>(*usage.input) - cached - written);
  double sum = fresh * price->input + cached * price->cached.value_or(price->input) +
               written * price->cache_write.value_or(price->input) +
               static_cast<double>(*usage.output) * price->output;
  return sum / 1e6;
}

}  // namespace cb::llm
