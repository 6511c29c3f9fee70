#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "doppler/program/onnx/constant.h"

// The values of small tensors, computed when a model is read: what exporters compute shapes with. Each function is a
// FoldRule of the operator table, or a TypeFoldRule where it takes a type.

namespace doppler::program {

// A node whose inputs are known and not empty, null where absent; the first is there. A rule gives the elements of one
// output, whose shape is complete and not empty.
struct FoldedNode {
  const onnx::NodeProto& node;
  const std::vector<const Constant*>& inputs;
  const std::vector<onnx::TypeProto>& outputs;
  std::size_t output;
  Shape dims;  // of that output
};

namespace folds {

using Values = std::vector<double>;
using MaybeValues = std::optional<Values>;

// Applies `function` to every element, with broadcasting; gives nothing if the number of inputs is another.
MaybeValues elementwise(const FoldedNode& op, std::size_t arity, double (*function)(const Values& arguments));
template <typename Function>
MaybeValues unary(const FoldedNode& op) {
  return elementwise(op, 1, [](const Values& x) { return static_cast<double>(Function()(x[0])); });
}
template <typename Function>
MaybeValues binary(const FoldedNode& op) {
  return elementwise(op, 2, [](const Values& x) { return static_cast<double>(Function()(x[0], x[1])); });
}
template <typename Function>
double fold_all(const Values& x) {
  double value = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) value = Function()(value, x[i]);
  return value;
}
template <typename Function>
MaybeValues several(const FoldedNode& op) {
  return elementwise(op, op.inputs.size(), fold_all<Function>);
}
// Folds all elements at once; that is how sizes are multiplied up.
template <typename Function>
MaybeValues reduce(const FoldedNode& op) {
  if (product(op.dims) != 1) return std::nullopt;
  return Values{fold_all<Function>(op.inputs[0]->values)};
}

// These functions the standard library does not have as types.
struct Absolute {
  double operator()(double x) const { return std::abs(x); }
};
struct Floor {
  double operator()(double x) const { return std::floor(x); }
};
struct Ceiling {
  double operator()(double x) const { return std::ceil(x); }
};
struct Nearest {
  double operator()(double x) const { return std::nearbyint(x); }
};
struct SquareRoot {
  double operator()(double x) const { return std::sqrt(x); }
};
struct Reciprocal {
  double operator()(double x) const { return 1 / x; }
};
struct Power {
  double operator()(double x, double y) const { return std::pow(x, y); }
};
struct Smaller {
  double operator()(double x, double y) const { return std::min(x, y); }
};
struct Larger {
  double operator()(double x, double y) const { return std::max(x, y); }
};

MaybeValues divide(const FoldedNode& op);
MaybeValues modulo(const FoldedNode& op);
MaybeValues where(const FoldedNode& op);
MaybeValues cast(const FoldedNode& op);
// Gives the elements of the first input, under another shape.
MaybeValues same(const FoldedNode& op);
MaybeValues expand(const FoldedNode& op);
MaybeValues concat(const FoldedNode& op);
MaybeValues split(const FoldedNode& op);
MaybeValues slice(const FoldedNode& op);
MaybeValues gather(const FoldedNode& op);
MaybeValues transpose(const FoldedNode& op);
MaybeValues range(const FoldedNode& op);
MaybeValues constant_of_shape(const FoldedNode& op);

std::optional<Constant> shape_of(const onnx::NodeProto& node, const onnx::TypeProto& input);
std::optional<Constant> size_of(const onnx::NodeProto& node, const onnx::TypeProto& input);

}  // namespace folds

// Where a Slice of a tensor of `dims` starts along each dimension and how it steps; how far it goes, its output says.
// There is nothing if its arguments are not known.
struct SliceRange {
  Index start = 0, step = 1;
};
std::optional<std::vector<SliceRange>> slice_ranges(const onnx::NodeProto& node, const Shape& dims,
                                                    const std::vector<const Constant*>& inputs);

}  // namespace doppler::program
