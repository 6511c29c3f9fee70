#include "doppler/program/text/ein_lexer.h"

#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string position(const std::string& where, const Token& token) {
  return fmt::format("{}:{}:{}", where, token.line, token.column);
}

void refuse(const std::string& where, const Token& found, std::string_view required) {
  const std::string text = found.kind == Token::Kind::newline ? "the end of the line"
                           : found.kind == Token::Kind::end   ? "the end of the file"
                                                              : fmt::format("'{}'", found.text);
  throw InputError(fmt::format("{}: found {}; required {}", position(where, found), text, required));
}

std::vector<Token> tokenize(const std::string& where, std::string_view text) {
  std::vector<Token> tokens;
  int line = 1, brackets = 0;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    Token token{Token::Kind::symbol, text.substr(i, 1), line, static_cast<int>(i - line_start) + 1, 0};
    if (c == '\n') {
      token.kind = Token::Kind::newline;
      if (brackets == 0) tokens.push_back(token);
      ++line, line_start = ++i;
      continue;
    }
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
      continue;
    }
    if (starts_word(c)) {
      std::size_t end = i;
      while (end < text.size() && continues_word(text[end])) ++end;
      token.kind = Token::Kind::word;
      token.text = text.substr(i, end - i);
    } else if (is_digit(c) || (c == '.' && i + 1 < text.size() && is_digit(text[i + 1]))) {
      token.kind = Token::Kind::number;
      const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), token.value);
      token.text = text.substr(i, static_cast<std::size_t>(end - text.data()) - i);
      if (error != std::errc()) refuse(where, token, "a number that a double can hold");
    } else if (std::string_view("=[](),:+-*/^<$").find(c) == std::string_view::npos) {
      refuse(where, token, "a name, a number, or one of = [ ] ( ) , : + - * / ^ < $");
    }
    if (c == '[' || c == '(') ++brackets;
    if ((c == ']' || c == ')') && brackets > 0) --brackets;
    tokens.push_back(token);
    i += token.text.size();
  }
  tokens.push_back({Token::Kind::end, {}, line, static_cast<int>(text.size() - line_start) + 1, 0});
  return tokens;
}

}  // namespace doppler::program
