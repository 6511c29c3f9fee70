#pragma once

#include "doppler/program/expr/program.h"
#include "doppler/program/onnx/reader.h"

namespace doppler::program {

// How blocks of an op's first output depend on its inputs.
struct StencilRule {
  struct Operand {
    ValueId value;
    std::vector<Stencil::Span> spans;
  };
  std::vector<Operand> operands;
  std::vector<Index> most_pieces;
  std::optional<Bytes> read = std::nullopt;
};

// Nothing for ops that stay whole. `output` is the index of one of the op's outputs; only Split has rules for any but
// the first.
std::optional<StencilRule> stencil_rule(const Reading& reading, const ModelOp& op, std::size_t output);
// A reshape: the first dimension of every group of dimensions that belong together may be cut.
StencilRule reshape_rule(ValueId value, const Shape& from, const Shape& to);

// The model as a program: matrix products and Einsum become einsums, ops with a rule become stencils that can be cut,
// the rest stencils that stay whole. Sizes of 0 become 1.
void lift(const Reading& reading, Program& program);

}  // namespace doppler::program
