#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "doppler/program/expr/program.h"

namespace doppler::program {

// A program as text, `.ein`; docs/programs.md has the grammar.
//
//   size b = 64, d = 512, f = 2048
//   input x[b, d]
//   weight w1[d, f]
//   h[b, f] = sum[d] x[b, d] * w1[d, f]
//   y = softmax(h)
//   output y
struct EinProgram {
  std::unique_ptr<Program> program;
  std::optional<ExprId> loss;
};

// Throws InputError "where:line:column: found …; required …". A program without `output` has all unread
// results as outputs, and the loss if there is one.
EinProgram parse_ein(const std::string& where, std::string_view text);

// True if the first word that is no comment begins a declaration: other text formats of the tool never start
// so.
bool looks_like_ein(std::string_view text);

}  // namespace doppler::program
