#include "doppler/base/terminal_text.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

namespace doppler {
namespace {

struct CodePoint {
  char32_t value;
  std::size_t bytes;  // 0: not UTF-8
};
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0 || length > text.size()) return {0, 0};
  char32_t value = first & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return {0, 0};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < kLeast[length] || value > 0x10FFFF || surrogate ? CodePoint{0, 0} : CodePoint{value, length};
}

// Unicode's controls, line separators and default-ignorable formats (general categories Cc, Zl, Zp and Cf).
bool shows_itself(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return !(code < 0x20 || within(0x7F, 0x9F) || code == 0xAD || code == 0x61C || code == 0x180E ||
           within(0x200B, 0x200F) || within(0x2028, 0x202E) || within(0x2060, 0x206F) || code == 0xFEFF ||
           within(0xFFF9, 0xFFFB) || within(0xE0000, 0xE0FFF));
}

std::string written_out(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  const auto number = static_cast<std::uint32_t>(code);
  return number < 0x80 ? fmt::format("\\x{:02x}", number) : fmt::format("\\u{:04x}", number);
}

}  // namespace

std::string for_terminal(std::string_view text, std::size_t most) {
  constexpr std::string_view kGap = "…";
  const std::size_t head = most / 2, tail = most - most / 2;
  std::string shown;
  std::vector<std::size_t> begins;  // of characters, so that the cut is between two of them
  while (!text.empty()) {
    const CodePoint next = first_code_point(text);
    begins.push_back(shown.size());
    if (next.bytes == 0)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (shows_itself(next.value))
      shown += text.substr(0, next.bytes);
    else
      shown += written_out(next.value);
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  if (shown.size() <= most) return shown;
  const std::size_t cut = *std::prev(std::upper_bound(begins.begin(), begins.end(), head));
  const auto rest = std::lower_bound(begins.begin(), begins.end(), shown.size() - tail + kGap.size());
  return shown.substr(0, cut) + std::string(kGap) + (rest == begins.end() ? "" : shown.substr(*rest));
}

}  // namespace doppler
