#pragma once

#include "doppler/program/expr/program.h"
#include "doppler/program/onnx/reading.h"

namespace doppler::program {

// Writes the model as a program: matrix products and Einsum become einsums, ops with a cut rule become stencils that
// can be cut, and the rest stencils that stay whole. Sizes of 0 become 1.
void model_to_program(const Reading& reading, Program& program);

}  // namespace doppler::program
