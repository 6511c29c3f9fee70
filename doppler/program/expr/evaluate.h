#pragma once

#include <complex>
#include <map>
#include <span>
#include <vector>

#include "doppler/program/expr/program.h"

namespace doppler::program {

// A dense row-major array. Always complex doubles: this is the reference against which everything else is
// checked, so it is simple and exact, not fast.
struct Dense {
  Shape shape;
  std::vector<std::complex<double>> values;

  explicit Dense(Shape size = {}) : shape(std::move(size)), values(static_cast<std::size_t>(product(shape))) {}
};
// The rectangle `region`, where `dense` covers `covers` of index space; and its inverse.
Dense cut(const Dense& dense, const Rect& covers, const Rect& region);
void paste(const Dense& piece, const Rect& region, Dense& dense, const Rect& covers);

using Values = std::map<ExprId, Dense>;

// One block of a node's join space. `operands[k]` covers operand_region(node, k, …, block); a formation takes
// any number of partial results of its output block.
Dense evaluate_block(const Node& node, const Rect& block, std::span<const Dense> operands,
                     const Variables& variables = {});

// Every expression, unpartitioned. `inputs` has a value for every input; throws InputError if not.
std::vector<Dense> evaluate(const Program& program, const Values& inputs, const Variables& variables = {});

}  // namespace doppler::program
