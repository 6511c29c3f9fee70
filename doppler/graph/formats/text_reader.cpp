#include "doppler/graph/formats/text_reader.h"

#include <charconv>
#include <cmath>

#include "doppler/base/error.h"

namespace doppler::formats {
namespace {

constexpr std::size_t kShown = 40;  // of a field that may be megabytes of garbage

std::string shown(std::string_view field) {
  std::string text;
  for (const char c : field.substr(0, kShown)) text += c >= ' ' && c <= '~' ? c : '?';
  return field.size() > kShown ? text + "…" : text;
}

[[noreturn]] void fail(const std::string& where, std::optional<std::string_view> field,
                       std::string_view required) {
  const std::string found = field ? fmt::format("found '{}'", shown(*field)) : std::string("the line ends");
  throw InputError(fmt::format("{}: {}; required {}", where, found, required));
}

template <typename T>
std::optional<T> parse(std::string_view field) {
  T value{};
  const char* last = field.data() + field.size();
  const auto [end, status] = std::from_chars(field.data(), last, value);
  return status == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string TextLine::where() const { return fmt::format("{}: line {}", file_, line_); }

std::optional<std::string_view> TextLine::next_field() {
  const std::size_t begin = rest_.find_first_not_of(separators_);
  if (begin == std::string_view::npos) return std::nullopt;
  rest_.remove_prefix(begin);
  const std::string_view field = rest_.substr(0, rest_.find_first_of(separators_));
  rest_.remove_prefix(field.size());
  return field;
}

std::optional<std::uint64_t> TextLine::next_integer() {
  const auto field = next_field();
  if (!field) return std::nullopt;
  const auto value = parse<std::uint64_t>(*field);
  if (!value) fail(where(), field, "a whole number below 2^64");
  return value;
}

std::uint64_t TextLine::integer(std::string_view required) {
  const auto value = next_integer();
  if (!value) fail(where(), std::nullopt, required);
  return *value;
}

double TextLine::number(std::string_view required) {
  const auto field = next_field();
  const auto value = field ? parse<double>(*field) : std::nullopt;
  if (!value || !std::isfinite(*value)) fail(where(), field, required);
  return *value;
}

void TextLine::expect_end() {
  if (const auto field = next_field()) fail(where(), field, "the end of the line");
}

TextLine TextReader::next_line(std::string_view required) {
  if (rest_.empty())
    throw InputError(fmt::format("{}: the file ends after line {}; required {}", file_, line_, required));
  const std::size_t length = rest_.find('\n');
  const std::string_view line = rest_.substr(0, length);
  rest_.remove_prefix(length == std::string_view::npos ? rest_.size() : length + 1);
  return {file_, ++line_, line, separators_};
}

bool TextReader::skip_to_content(std::string_view comment_marks) {
  while (!rest_.empty()) {
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    const std::size_t begin = line.find_first_not_of(separators_);
    if (begin != std::string_view::npos && comment_marks.find(line[begin]) == std::string_view::npos)
      return true;
    rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
    ++line_;
  }
  return false;
}

}  // namespace doppler::formats
