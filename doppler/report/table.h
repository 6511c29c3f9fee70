#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace doppler {

// Columns a terminal uses to show UTF-8 text: wide characters count two, combining ones none.
std::size_t display_width(std::string_view text);

// An aligned text table. The best rows start with '*'.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column, of one line each.
  void add_row(std::vector<std::string> cells, bool best = false);
  std::string text() const;  // ends with a newline; no spaces at the end of lines

 private:
  struct Row {
    std::vector<std::string> cells;
    bool best;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace doppler
