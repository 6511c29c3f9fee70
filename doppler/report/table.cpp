#include "doppler/report/table.h"

#include <algorithm>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// The next code point; bytes that are not UTF-8 count as one character each.
char32_t next_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 1;
  char32_t code = length == 1 ? first : first & (0x7F >> length);
  std::size_t used = 1;
  while (used < length && used < text.size() && byte(used) >> 6 == 2) code = code << 6 | (byte(used++) & 0x3F);
  text.remove_prefix(used);
  return code;
}

// The blocks that matter of Unicode's East Asian Width property (W and F), without a library for it.
bool is_wide(char32_t code) {
  return (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
         (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
         (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
         (code >= 0xFFE0 && code <= 0xFFE6) || (code >= 0x1F300 && code <= 0x1FAFF) ||
         (code >= 0x20000 && code <= 0x3FFFD);
}

bool is_combining(char32_t code) { return code >= 0x300 && code <= 0x36F; }

void append_line(std::string& text, std::string_view mark, const std::vector<std::string>& cells,
                 const std::vector<Table::Column>& columns, const std::vector<std::size_t>& widths) {
  text += mark;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const std::string padding(widths[c] - display_width(cells[c]), ' ');
    if (c > 0) text += "  ";
    text += columns[c].align == Table::Align::right ? padding + cells[c] : cells[c] + padding;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const char32_t code = next_code_point(text);
    width += is_wide(code) ? 2 : is_combining(code) ? 0 : 1;
  }
  return width;
}

void Table::add_row(std::vector<std::string> cells, bool best) {
  DOPPLER_CHECK(cells.size() == columns_.size(), "{} cells for {} columns", cells.size(), columns_.size());
  rows_.push_back({std::move(cells), best});
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    titles.push_back(columns_[c].title);
    widths.push_back(display_width(titles.back()));
    for (const Row& row : rows_) widths[c] = std::max(widths[c], display_width(row.cells[c]));
  }
  std::string text;
  append_line(text, "  ", titles, columns_, widths);
  for (const Row& row : rows_) append_line(text, row.best ? "* " : "  ", row.cells, columns_, widths);
  return text;
}

}  // namespace doppler
