#pragma once

#include "doppler/program/expr/program.h"
#include "doppler/program/onnx/reading.h"

namespace doppler::program {

// Writes the model as a program: matrix products and Einsum become einsums, ops with a cut rule become stencils that
// can be cut, and the rest stencils that stay whole. Sizes of 0 become 1.
void model_to_program(const Reading& reading, Program& program);

// What an expression of a program is in the model that it was written from: one output of an op, or all of them.
struct ExprOrigin {
  std::uint32_t op = kNone;  // of the reading; kNone for inputs and views
  std::uint32_t output = kNone;
};
// Does the same so that blocks can be run: every op is one stencil or, where each output is cut by itself, one per
// output, and only what kernels compute block by block is cut. Returns where the expressions come from.
std::vector<ExprOrigin> model_to_runnable_program(const Reading& reading, Program& program);

}  // namespace doppler::program
