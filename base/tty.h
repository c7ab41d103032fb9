#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace cb {

enum class Color { kPlain, kGreen, kRed, kYellow, kDim, kBold };

/// Whether to colour `stream`: a terminal, TERM is not "dumb", NO_COLOR is empty.
bool use_color(std::FILE* stream);

/// `text` in `color` when `enabled`, else `text`.
std::string colored(const std::string& text, Color color, bool enabled);

/// A table for terminals: columns as wide as their widest cell, numbers aligned right. Cells are
/// plain text; colour is applied per cell after the widths are known.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  struct Cell {
    std::string text;
    Color color = Color::kPlain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// `cells` has one entry per column.
  void add_row(std::vector<Cell> cells);
  /// The table with a header line, each line ended by a newline.
  std::string render(bool color) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Progress on stderr: one line that rewrites itself on a terminal, otherwise a plain line at most
/// every 30 seconds. Nothing when `quiet`.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();

  void update(const std::string& line);
  /// Removes the line from the terminal, before something else is printed.
  void clear();

 private:
  bool quiet_;
  bool terminal_;
  bool shown_ = false;
  int64_t last_plain_ms_;
};

}  // namespace cb
