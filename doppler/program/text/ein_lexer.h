#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doppler/program/expr/shape.h"

namespace doppler::program {

struct Token {
  enum class Kind : std::uint8_t { word, number, symbol, newline, end };
  Kind kind = Kind::end;
  std::string_view text;  // of the source, which must outlive the token
  int line = 1, column = 1;
  double value = 0;  // number
};

// Comments and newlines inside brackets are dropped, so a statement in brackets may span lines. The last
// token is `end`. Throws InputError at characters that no token starts with.
std::vector<Token> tokenize(const std::string& where, std::string_view text);

// "where:line:column: found 'text'; required …"
[[noreturn]] void refuse(const std::string& where, const Token& found, std::string_view required);
std::string position(const std::string& where, const Token& token);

}  // namespace doppler::program
