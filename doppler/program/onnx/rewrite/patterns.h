#pragma once

#include "doppler/program/onnx/rewrite/rewriting.h"

// What several passes look for.

namespace doppler::program {

// A node of two inputs, one of which is a number that is known.
struct WithScalar {
  std::string tensor;  // the other input
  double scalar = 0;
  bool scalar_first = false;
};
std::optional<WithScalar> with_scalar(const Rewriting& graph, NodeIndex node);
bool nearly(double a, double b);

// Returns the factor and the tensor that a Mul or Div by a number scales; nothing for other nodes.
std::optional<WithScalar> scaled_by(const Rewriting& graph, NodeIndex node);

// Returns the other input of a node of two.
const std::string& other_input(const onnx::NodeProto& node, const std::string& one);
// Returns the axis of a node as a number from the end, -1 for the last; nothing if it is not the only one.
std::optional<Index> only_axis(const Rewriting& graph, const onnx::NodeProto& node);
// Returns the order of a Transpose; the default reverses the dimensions.
std::vector<Index> order_of(const onnx::NodeProto& transpose, std::size_t rank);

}  // namespace doppler::program
