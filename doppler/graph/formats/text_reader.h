#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Internal to doppler/graph/formats: what the readers of line-oriented text share.
namespace doppler::formats {

// One line, taken apart into fields.
class TextLine {
 public:
  TextLine(const std::string& file, std::size_t line, std::string_view text, std::string_view separators)
      : file_(file), line_(line), rest_(text), separators_(separators) {}

  std::string where() const;  // "file: line 3"
  std::optional<std::string_view> next_field();
  std::optional<std::uint64_t> next_integer();
  // Throw InputError if there is no field, or if it is something else; `required` completes the error text.
  std::uint64_t integer(std::string_view required);
  double number(std::string_view required);
  void expect_end();

 private:
  const std::string& file_;
  std::size_t line_;
  std::string_view rest_, separators_;
};

// `file` and `content` must outlive it.
class TextReader {
 public:
  TextReader(const std::string& file, std::string_view content, std::string_view separators)
      : file_(file), rest_(content), separators_(separators) {}

  // Throws InputError if the file has ended; `required` completes the error text.
  TextLine next_line(std::string_view required);
  // Skips empty lines, and lines that start with one of `comment_marks`; false if nothing else is left.
  bool skip_to_content(std::string_view comment_marks = "");

 private:
  const std::string& file_;
  std::string_view rest_, separators_;
  std::size_t line_ = 0;
};

}  // namespace doppler::formats
