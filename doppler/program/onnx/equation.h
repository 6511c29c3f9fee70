#pragma once

#include <map>

#include "doppler/program/onnx/proto.h"

namespace doppler::program {

// An Einsum node's equation with the ellipsis and the implicit output written out. Labels are letters, and "...0" and
// so on for what the ellipsis stands for.
struct Equation {
  std::vector<std::vector<std::string>> inputs;
  std::vector<std::string> output;
  std::map<std::string, Index> sizes;
};

// Writes the node's equation out. Throws InputError if it does not fit the operands.
Equation parse_equation(const onnx::NodeProto& node, const std::vector<Shape>& operands);

}  // namespace doppler::program
