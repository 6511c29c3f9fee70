#pragma once

#include "doppler/program/expr/program.h"
#include "doppler/program/onnx/reader.h"

namespace doppler::program {

// The model as a program: matrix products and Einsum become einsums, ops with a rule become stencils that can be cut,
// the rest stencils that stay whole. Sizes of 0 become 1.
void lift(const Reading& reading, Program& program);

}  // namespace doppler::program
