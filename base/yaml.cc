#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"

namespace cb {

struct Yaml::Document {
  std::string name;
};

// A tree of our own beside yaml-cpp's: it remembers the path of a node and which keys were read.
struct Yaml::Node {
  YAML::Node value;
  std::string path;
  std::vector<std::pair<std::string, std::shared_ptr<Node>>> children;
  std::set<std::string, std::less<>> read;
};

namespace {

std::string location(const std::string& name, const YAML::Node& node) {
  return node.Mark().line >= 0 ? fmt::format("{}:{}", name, node.Mark().line + 1) : name;
}

}  // namespace

Yaml Yaml::load_text(const std::string& text, const std::string& name) {
  auto document = std::make_shared<Document>(Document{name});
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& e) {
    throw Error(ErrorCode::kConfig, fmt::format("{}:{}: {}", name, e.mark.line + 1, e.msg));
  }
  auto build = [&](auto&& self, const YAML::Node& value,
                   const std::string& path) -> std::shared_ptr<Node> {
    auto node = std::make_shared<Node>();
    node->value = value;
    node->path = path;
    if (value.IsMap()) {
      std::set<std::string> seen;
      for (const auto& entry : value) {
        std::string key = entry.first.Scalar();
        if (!seen.insert(key).second) {
          throw Error(ErrorCode::kConfig,
                      fmt::format("{}: {}: key given twice", location(name, entry.first), key));
        }
        node->children.emplace_back(
            key, self(self, entry.second, path.empty() ? key : path + "." + key));
      }
    } else if (value.IsSequence()) {
      for (size_t i = 0; i < value.size(); ++i) {
        node->children.emplace_back("", self(self, value[i], fmt::format("{}[{}]", path, i)));
      }
    }
    return node;
  };
  return Yaml(document, build(build, root, ""));
}

Yaml Yaml::load_file(const std::string& path) {
  return load_text(value_or_throw(read_file(path, size_t{4} << 20)), path);
}

bool Yaml::is_list() const { return node_->value.IsSequence(); }
bool Yaml::is_mapping() const { return node_->value.IsMap(); }

std::optional<Yaml> Yaml::find(std::string_view key) const {
  if (!is_mapping()) throw error("expected a mapping");
  node_->read.emplace(key);
  for (const auto& [name, child] : node_->children) {
    if (name == key) return Yaml(document_, child);
  }
  return std::nullopt;
}

bool Yaml::has(std::string_view key) const { return find(key).has_value(); }

Yaml Yaml::at(std::string_view key) const {
  std::optional<Yaml> child = find(key);
  if (!child) throw error(fmt::format("missing key \"{}\"", key));
  return *child;
}

std::vector<Yaml> Yaml::items() const {
  if (!is_list()) throw error("expected a list");
  std::vector<Yaml> items;
  for (const auto& [name, child] : node_->children) items.push_back(Yaml(document_, child));
  return items;
}

std::vector<std::string> Yaml::keys() const {
  if (!is_mapping()) throw error("expected a mapping");
  std::vector<std::string> keys;
  for (const auto& [name, child] : node_->children) {
    keys.push_back(name);
    node_->read.insert(name);
  }
  return keys;
}

std::string Yaml::text() const {
  if (!node_->value.IsScalar()) throw error("expected a single value");
  return node_->value.Scalar();
}

int64_t Yaml::integer(int64_t min, int64_t max) const {
  std::optional<int64_t> value = parse_bytes_or_integer(text());
  if (!value) {
    throw error(fmt::format("\"{}\" is not a whole number (64, 4K and 16M are)", text()));
  }
  if (*value < min || *value > max) {
    throw error(fmt::format("{} is outside {} to {}", *value, min, max));
  }
  return *value;
}

double Yaml::number() const {
  try {
    return node_->value.as<double>();
  } catch (const YAML::Exception&) {
    throw error(fmt::format("\"{}\" is not a number", text()));
  }
}

bool Yaml::boolean() const {
  std::string value = text();
  if (value == "true") return true;
  if (value == "false") return false;
  throw error(fmt::format("\"{}\" is not true or false", value));
}

size_t Yaml::one_of(const std::vector<std::string>& known) const {
  std::string value = text();
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i] == value) return i;
  }
  throw error(fmt::format("unknown \"{}\" (known: {})", value, fmt::join(known, ", ")));
}

std::vector<std::string> Yaml::texts() const {
  std::vector<std::string> values;
  for (const Yaml& item : items()) values.push_back(item.text());
  return values;
}

std::vector<int64_t> Yaml::integers(int64_t min, int64_t max) const {
  std::vector<int64_t> values;
  for (const Yaml& item : items()) values.push_back(item.integer(min, max));
  return values;
}

void Yaml::finish() const {
  for (const auto& [key, child] : node_->children) {
    Yaml node(document_, child);
    if (is_mapping() && !node_->read.contains(key)) {
      std::vector<std::string> known(node_->read.begin(), node_->read.end());
      throw node.error(fmt::format("unknown key (known here: {})", fmt::join(known, ", ")));
    }
    node.finish();
  }
}

Error Yaml::error(const std::string& message) const {
  return Error(ErrorCode::kConfig,
               fmt::format("{}: {}{}{}", location(document_->name, node_->value), node_->path,
                           node_->path.empty() ? "" : ": ", message));
}

}  // namespace cb
