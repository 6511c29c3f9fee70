#include "doppler/program/onnx/fold_rules.h"

namespace doppler::program {
namespace {

using onnx::TensorProto;
using Inputs = std::vector<const Constant*>;

bool is_integer(std::int32_t element) { return !is_float(element); }

// Returns the element of `input` that broadcasting pairs with `index` of the output.
double broadcast_at(const Constant& input, const std::vector<Index>& index) {
  std::vector<Index> own(input.dims.size());
  const std::size_t skipped = index.size() - own.size();
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = input.dims[i] == 1 ? 0 : index[skipped + i];
  return input.values[static_cast<std::size_t>(offset_in(input.dims, own))];
}

bool broadcasts(const Constant& input, const Shape& output) {
  if (input.dims.size() > output.size()) return false;
  const std::size_t skipped = output.size() - input.dims.size();
  for (std::size_t i = 0; i < input.dims.size(); ++i)
    if (input.dims[i] != 1 && input.dims[i] != output[skipped + i]) return false;
  return true;
}

// Returns the axis in [0, rank), or nothing if there is no such axis.
std::optional<std::size_t> axis_of(Index axis, std::size_t rank) {
  if (axis < 0) axis += static_cast<Index>(rank);
  if (axis < 0 || axis >= static_cast<Index>(rank)) return std::nullopt;
  return static_cast<std::size_t>(axis);
}

}  // namespace

std::optional<std::vector<SliceRange>> slice_ranges(const onnx::NodeProto& node, const Shape& dims,
                                                    const Inputs& inputs) {
  const auto argument = [&](std::size_t slot, std::string_view name) -> std::optional<std::vector<Index>> {
    if (slot >= inputs.size() || inputs[slot] == nullptr) return ints_attribute(node, name);
    std::vector<Index> result;
    for (std::size_t i = 0; i < inputs[slot]->values.size(); ++i) result.push_back(inputs[slot]->as_index(i));
    return result;
  };
  const auto starts = argument(1, "starts"), axes = argument(3, "axes"), steps = argument(4, "steps");
  if (!starts) return std::nullopt;
  std::vector<SliceRange> ranges(dims.size());
  for (std::size_t i = 0; i < starts->size(); ++i) {
    if ((axes && i >= axes->size()) || (steps && i >= steps->size())) return std::nullopt;
    const auto axis = axis_of(axes ? (*axes)[i] : static_cast<Index>(i), dims.size());
    if (!axis) return std::nullopt;
    const Index size = dims[*axis], step = steps ? (*steps)[i] : 1;
    Index start = (*starts)[i];
    if (start < 0) start = start < -size ? 0 : start + size;
    ranges[*axis] = {std::min(start, step < 0 ? size - 1 : size), step};
  }
  return ranges;
}

namespace folds {

MaybeValues elementwise(const FoldedNode& op, std::size_t arity, double (*function)(const Values& arguments)) {
  if (op.inputs.size() < arity) return std::nullopt;
  for (std::size_t k = 0; k < op.inputs.size(); ++k)
    if (k >= arity || op.inputs[k] == nullptr || !broadcasts(*op.inputs[k], op.dims)) return std::nullopt;
  Values values, arguments(arity);
  for_each_index(Rect::whole(op.dims), [&](const std::vector<Index>& index) {
    for (std::size_t k = 0; k < arity; ++k) arguments[k] = broadcast_at(*op.inputs[k], index);
    values.push_back(function(arguments));
  });
  return values;
}

MaybeValues divide(const FoldedNode& op) {
  if (!is_integer(op.inputs[0]->element)) return binary<std::divides<>>(op);
  return elementwise(op, 2, [](const Values& x) { return x[1] == 0 ? 0 : std::trunc(x[0] / x[1]); });
}

// The result has the sign of the divisor, as in Python; ONNX's fmod attribute is rare on shapes and not folded.
MaybeValues modulo(const FoldedNode& op) {
  if (int_attribute(op.node, "fmod", 0) != 0) return std::nullopt;
  return elementwise(op, 2, [](const Values& x) { return x[1] == 0 ? 0 : x[0] - x[1] * std::floor(x[0] / x[1]); });
}

MaybeValues where(const FoldedNode& op) {
  return elementwise(op, 3, [](const Values& x) { return x[0] != 0 ? x[1] : x[2]; });
}

MaybeValues cast(const FoldedNode& op) {
  const std::int32_t element = element_of(op.outputs[op.output]);
  Values values = op.inputs[0]->values;
  for (double& value : values) {
    if (element == TensorProto::BOOL)
      value = value != 0 ? 1 : 0;
    else if (is_integer(element))
      value = std::trunc(value);
    else if (element == TensorProto::FLOAT)
      value = static_cast<float>(value);
  }
  return values;
}

MaybeValues same(const FoldedNode& op) { return op.inputs[0]->values; }

// The second input is the shape, which `dims` says already.
MaybeValues expand(const FoldedNode& op) {
  const Inputs data = {op.inputs[0]};
  return elementwise({op.node, data, op.outputs, op.output, op.dims}, 1, [](const Values& x) { return x[0]; });
}

MaybeValues concat(const FoldedNode& op) {
  const Shape& dims = op.dims;
  const auto axis = axis_of(int_attribute(op.node, "axis", 0), dims.size());
  if (!axis) return std::nullopt;
  Values values(static_cast<std::size_t>(product(dims)));
  Index begin = 0;
  for (const Constant* input : op.inputs) {
    if (input == nullptr || input->dims.size() != dims.size()) return std::nullopt;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (input->dims[i] > dims[i] - (i == *axis ? begin : 0)) return std::nullopt;
    std::size_t next = 0;
    for_each_index(Rect::whole(input->dims), [&](std::vector<Index> index) {
      index[*axis] += begin;
      values[static_cast<std::size_t>(offset_in(dims, index))] = input->values[next++];
    });
    begin += input->dims[*axis];
  }
  return values;
}

// Only vectors are split: their pieces follow one another.
MaybeValues split(const FoldedNode& op) {
  const Constant& data = *op.inputs[0];
  const auto axis = axis_of(int_attribute(op.node, "axis", 0), data.dims.size());
  if (!axis || data.dims.size() != 1) return std::nullopt;
  Index begin = 0;
  for (std::size_t i = 0; i <= op.output; ++i) {
    const std::optional<Shape> dims = dims_of(op.outputs[i]);
    if (!dims || dims->size() != 1 || (*dims)[0] == kUnknown || (*dims)[0] > std::ssize(data.values) - begin)
      return std::nullopt;
    if (i < op.output) begin += (*dims)[0];
  }
  const auto first = data.values.begin() + begin;
  return Values(first, first + op.dims[0]);
}

MaybeValues slice(const FoldedNode& op) {
  const Shape& dims = op.dims;
  const Constant& data = *op.inputs[0];
  const auto ranges = slice_ranges(op.node, data.dims, op.inputs);
  if (!ranges || dims.size() != data.dims.size()) return std::nullopt;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto& [start, step] = (*ranges)[i];
    if (step > kMostFolded || step < -kMostFolded) return std::nullopt;
    const Index last = start + (dims[i] - 1) * step;
    if (start < 0 || start >= data.dims[i] || last < 0 || last >= data.dims[i]) return std::nullopt;
  }
  Values values;
  for_each_index(Rect::whole(dims), [&](std::vector<Index> index) {
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = (*ranges)[i].start + index[i] * (*ranges)[i].step;
    values.push_back(data.values[static_cast<std::size_t>(offset_in(data.dims, index))]);
  });
  return values;
}

MaybeValues gather(const FoldedNode& op) {
  if (op.inputs.size() < 2 || op.inputs[1] == nullptr) return std::nullopt;
  const Constant &data = *op.inputs[0], &indices = *op.inputs[1];
  const auto axis = axis_of(int_attribute(op.node, "axis", 0), data.dims.size());
  if (!axis) return std::nullopt;
  const auto at = static_cast<std::ptrdiff_t>(*axis);
  const Shape before(data.dims.begin(), data.dims.begin() + at), after(data.dims.begin() + at + 1, data.dims.end());
  const Index size = data.dims[*axis], inner = product(after);
  Values values;
  for (Index outer = 0; outer < product(before); ++outer)
    for (std::size_t i = 0; i < indices.values.size(); ++i) {
      Index index = indices.as_index(i);
      if (index < 0 && index >= -size) index += size;
      if (index < 0 || index >= size) return std::nullopt;
      for (Index k = 0; k < inner; ++k)
        values.push_back(data.values[static_cast<std::size_t>((outer * size + index) * inner + k)]);
    }
  return values;
}

MaybeValues transpose(const FoldedNode& op) {
  const Shape& dims = op.dims;
  const Constant& data = *op.inputs[0];
  std::vector<Index> order = ints_attribute(op.node, "perm").value_or(std::vector<Index>());
  if (order.empty())
    for (std::size_t i = dims.size(); i-- > 0;) order.push_back(static_cast<Index>(i));
  if (order.size() != dims.size() || data.dims.size() != dims.size()) return std::nullopt;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (!axis_of(order[i], dims.size()) || order[i] < 0 || data.dims[static_cast<std::size_t>(order[i])] != dims[i])
      return std::nullopt;
  Values values;
  for_each_index(Rect::whole(dims), [&](const std::vector<Index>& index) {
    std::vector<Index> own(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) own[static_cast<std::size_t>(order[i])] = index[i];
    values.push_back(data.values[static_cast<std::size_t>(offset_in(data.dims, own))]);
  });
  return values;
}

MaybeValues range(const FoldedNode& op) {
  if (op.inputs.size() != 3 || op.inputs[1] == nullptr || op.inputs[2] == nullptr) return std::nullopt;
  const double start = op.inputs[0]->values[0], step = op.inputs[2]->values[0];
  Values values;
  for (Index i = 0; i < product(op.dims); ++i) values.push_back(start + static_cast<double>(i) * step);
  return values;
}

MaybeValues constant_of_shape(const FoldedNode& op) {
  double value = 0;
  if (const onnx::AttributeProto* given = find_attribute(op.node, "value")) {
    const std::optional<Constant> read = read_constant(given->t());
    if (!read || read->values.size() != 1) return std::nullopt;
    value = read->values[0];
  }
  return Values(static_cast<std::size_t>(product(op.dims)), value);
}

std::optional<Constant> shape_of(const onnx::NodeProto& node, const onnx::TypeProto& input) {
  const Shape dims = *dims_of(input);
  const auto rank = static_cast<Index>(dims.size());
  const auto clamped = [&](Index at) { return std::clamp<Index>(at < 0 ? at + rank : at, 0, rank); };
  const Index start = clamped(int_attribute(node, "start", 0)), end = clamped(int_attribute(node, "end", rank));
  Constant constant{TensorProto::INT64, {}, {}};
  for (Index i = start; i < end; ++i) constant.values.push_back(static_cast<double>(dims[static_cast<std::size_t>(i)]));
  constant.dims = {static_cast<Index>(constant.values.size())};
  return constant;
}

std::optional<Constant> size_of(const onnx::NodeProto& node, const onnx::TypeProto& input) {
  return Constant{TensorProto::INT64, {}, {static_cast<double>(element_count(*dims_of(input), describe(node)))}};
}

}  // namespace folds
}  // namespace doppler::program
