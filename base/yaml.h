#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cb {

/// A strict view of a YAML file. Every wrong value is an Error(kConfig) of the form
/// `tasks/x/task.yaml:12: cases[2].dtype: unknown "fp9" (known: f32, f16)`, thrown; a loader
/// catches it once, at the file. A key that nobody read is an error too: see `finish`.
class Yaml {
 public:
  /// Parses a file or text. `name` is what messages call it.
  static Yaml load_file(const std::string& path);
  static Yaml load_text(const std::string& text, const std::string& name);

  bool has(std::string_view key) const;
  /// The value under `key`; missing is an error that names the mapping's line.
  Yaml at(std::string_view key) const;
  std::optional<Yaml> find(std::string_view key) const;

  /// The elements of a list; anything else is an error.
  std::vector<Yaml> items() const;
  /// The keys of a mapping in file order, each marked as read.
  std::vector<std::string> keys() const;

  std::string text() const;
  int64_t integer(int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;
  double number() const;
  bool boolean() const;
  /// One of `known`; anything else is an error that lists them. Returns its index.
  size_t one_of(const std::vector<std::string>& known) const;

  std::vector<std::string> texts() const;
  std::vector<int64_t> integers(int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;

  bool is_list() const;
  bool is_mapping() const;

  /// Fails on any key of this mapping, or of a mapping inside it, that no `at`, `find` or `keys`
  /// asked for: a misspelt key must not be ignored silently.
  void finish() const;

  /// An error at this node's line, for checks that the loader does itself.
  Error error(const std::string& message) const;

 private:
  struct Document;
  struct Node;
  Yaml(std::shared_ptr<Document> document, std::shared_ptr<Node> node)
      : document_(std::move(document)), node_(std::move(node)) {}

  std::shared_ptr<Document> document_;
  std::shared_ptr<Node> node_;
};

}  // namespace cb
