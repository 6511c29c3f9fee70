#include <algorithm>
#include <cmath>
#include <map>

#include "doppler/program/onnx/constant.h"

namespace doppler::program {
namespace {

using onnx::TensorProto;
using Inputs = std::vector<const Constant*>;

bool is_integer(std::int32_t element) { return !is_float(element); }

// The element of `input` that broadcasting pairs with `index` of the output.
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

struct Function {
  std::size_t arity;  // 0: any but none
  double (*apply)(const std::vector<double>& x, bool integer);
};

double divide(double a, double b, bool integer) {
  if (integer && b == 0) return 0;
  return integer ? std::trunc(a / b) : a / b;
}
// The sign of the divisor, as in Python; ONNX's fmod attribute is rare on shapes and not folded.
double modulo(double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }

const std::map<std::string, Function, std::less<>>& elementwise() {
  static const std::map<std::string, Function, std::less<>> kFunctions = {
      {"Identity", {1, [](const std::vector<double>& x, bool) { return x[0]; }}},
      {"Neg", {1, [](const std::vector<double>& x, bool) { return -x[0]; }}},
      {"Abs", {1, [](const std::vector<double>& x, bool) { return std::abs(x[0]); }}},
      {"Floor", {1, [](const std::vector<double>& x, bool) { return std::floor(x[0]); }}},
      {"Ceil", {1, [](const std::vector<double>& x, bool) { return std::ceil(x[0]); }}},
      {"Round", {1, [](const std::vector<double>& x, bool) { return std::nearbyint(x[0]); }}},
      {"Sqrt", {1, [](const std::vector<double>& x, bool) { return std::sqrt(x[0]); }}},
      {"Reciprocal", {1, [](const std::vector<double>& x, bool) { return 1 / x[0]; }}},
      {"Not", {1, [](const std::vector<double>& x, bool) { return x[0] == 0 ? 1.0 : 0.0; }}},
      {"Add", {2, [](const std::vector<double>& x, bool) { return x[0] + x[1]; }}},
      {"Sub", {2, [](const std::vector<double>& x, bool) { return x[0] - x[1]; }}},
      {"Mul", {2, [](const std::vector<double>& x, bool) { return x[0] * x[1]; }}},
      {"Div", {2, [](const std::vector<double>& x, bool integer) { return divide(x[0], x[1], integer); }}},
      {"Mod", {2, [](const std::vector<double>& x, bool) { return modulo(x[0], x[1]); }}},
      {"Pow", {2, [](const std::vector<double>& x, bool) { return std::pow(x[0], x[1]); }}},
      {"Min", {0, [](const std::vector<double>& x, bool) { return *std::min_element(x.begin(), x.end()); }}},
      {"Max", {0, [](const std::vector<double>& x, bool) { return *std::max_element(x.begin(), x.end()); }}},
      {"Equal", {2, [](const std::vector<double>& x, bool) { return x[0] == x[1] ? 1.0 : 0.0; }}},
      {"Greater", {2, [](const std::vector<double>& x, bool) { return x[0] > x[1] ? 1.0 : 0.0; }}},
      {"GreaterOrEqual", {2, [](const std::vector<double>& x, bool) { return x[0] >= x[1] ? 1.0 : 0.0; }}},
      {"Less", {2, [](const std::vector<double>& x, bool) { return x[0] < x[1] ? 1.0 : 0.0; }}},
      {"LessOrEqual", {2, [](const std::vector<double>& x, bool) { return x[0] <= x[1] ? 1.0 : 0.0; }}},
      {"And", {2, [](const std::vector<double>& x, bool) { return x[0] != 0 && x[1] != 0 ? 1.0 : 0.0; }}},
      {"Or", {2, [](const std::vector<double>& x, bool) { return x[0] != 0 || x[1] != 0 ? 1.0 : 0.0; }}},
      {"Where", {3, [](const std::vector<double>& x, bool) { return x[0] != 0 ? x[1] : x[2]; }}},
      {"Expand", {1, [](const std::vector<double>& x, bool) { return x[0]; }}},
  };
  return kFunctions;
}

using Values = std::vector<double>;

std::optional<Values> fold_elementwise(const Function& function, const Inputs& inputs, const Shape& dims) {
  for (const Constant* input : inputs)
    if (input == nullptr || !broadcasts(*input, dims)) return std::nullopt;
  Values values, arguments(inputs.size());
  const bool integer = is_integer(inputs[0]->element);
  for_each_index(Rect::whole(dims), [&](const std::vector<Index>& index) {
    for (std::size_t k = 0; k < inputs.size(); ++k) arguments[k] = broadcast_at(*inputs[k], index);
    values.push_back(function.apply(arguments, integer));
  });
  return values;
}

std::optional<Values> cast(const Constant& input, std::int32_t element) {
  Values values = input.values;
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

// The axis in [0, rank), or nothing.
std::optional<std::size_t> axis_of(Index axis, std::size_t rank) {
  if (axis < 0) axis += static_cast<Index>(rank);
  if (axis < 0 || axis >= static_cast<Index>(rank)) return std::nullopt;
  return static_cast<std::size_t>(axis);
}

std::optional<Values> concat(const onnx::NodeProto& node, const Inputs& inputs, const Shape& dims) {
  const auto axis = axis_of(int_attribute(node, "axis", 0), dims.size());
  if (!axis) return std::nullopt;
  Values values(static_cast<std::size_t>(product(dims)));
  Index begin = 0;
  for (const Constant* input : inputs) {
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

std::optional<Values> gather(const onnx::NodeProto& node, const Constant& data, const Constant& indices) {
  const auto axis = axis_of(int_attribute(node, "axis", 0), data.dims.size());
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

namespace {

std::optional<Values> slice(const onnx::NodeProto& node, const Inputs& inputs, const Shape& dims) {
  const Constant& data = *inputs[0];
  const auto ranges = slice_ranges(node, data.dims, inputs);
  if (!ranges || dims.size() != data.dims.size()) return std::nullopt;
  for (std::size_t i = 0; i < dims.size() && product(dims) > 0; ++i) {
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

std::optional<Values> transpose(const onnx::NodeProto& node, const Constant& data, const Shape& dims) {
  std::vector<Index> order = ints_attribute(node, "perm").value_or(std::vector<Index>());
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

// Over everything; that is how sizes are multiplied up.
std::optional<Values> reduce(const std::string& type, const Constant& data, const Shape& dims) {
  if (product(dims) != 1 || data.values.empty()) return std::nullopt;
  double value = data.values[0];
  for (std::size_t i = 1; i < data.values.size(); ++i) {
    const double next = data.values[i];
    value = type == "ReduceProd"  ? value * next
            : type == "ReduceSum" ? value + next
            : type == "ReduceMax" ? std::max(value, next)
                                  : std::min(value, next);
  }
  return Values{value};
}

std::optional<Values> range(const Constant& start, const Constant& step, const Shape& dims) {
  Values values;
  for (Index i = 0; i < product(dims); ++i) values.push_back(start.values[0] + static_cast<double>(i) * step.values[0]);
  return values;
}

std::optional<Values> constant_of_shape(const onnx::NodeProto& node, const Shape& dims) {
  double value = 0;
  if (const onnx::AttributeProto* given = find_attribute(node, "value")) {
    const std::optional<Constant> read = read_constant(given->t());
    if (!read || read->values.size() != 1) return std::nullopt;
    value = read->values[0];
  }
  return Values(static_cast<std::size_t>(product(dims)), value);
}

std::optional<Values> fold_movement(const onnx::NodeProto& node, const Inputs& inputs, const Shape& dims) {
  const std::string& type = node.op_type();
  if (type == "ConstantOfShape") return constant_of_shape(node, dims);
  if (type == "Concat") return concat(node, inputs, dims);
  if (type == "Squeeze" || type == "Unsqueeze" || type == "Reshape" || type == "Flatten") return inputs[0]->values;
  if (type == "Slice") return slice(node, inputs, dims);
  if (type == "Transpose") return transpose(node, *inputs[0], dims);
  if (type == "ReduceProd" || type == "ReduceSum" || type == "ReduceMax" || type == "ReduceMin")
    return reduce(type, *inputs[0], dims);
  if (inputs.size() < 2 || inputs[1] == nullptr) return std::nullopt;
  if (type == "Gather") return gather(node, *inputs[0], *inputs[1]);
  const bool scalars =
      inputs.size() == 3 && inputs[2] != nullptr && !inputs[0]->values.empty() && !inputs[2]->values.empty();
  return type == "Range" && scalars ? range(*inputs[0], *inputs[2], dims) : std::nullopt;
}

std::optional<Values> fold_values(const onnx::NodeProto& node, const Inputs& inputs, const onnx::TypeProto& output,
                                  const Shape& dims) {
  if (inputs.empty() || inputs[0] == nullptr) return std::nullopt;
  if (node.op_type() == "Cast") return cast(*inputs[0], element_of(output));
  const auto function = elementwise().find(node.op_type());
  if (function == elementwise().end()) return fold_movement(node, inputs, dims);
  if (node.op_type() == "Mod" && int_attribute(node, "fmod", 0) != 0) return std::nullopt;
  // The second input of Expand is the shape, which `dims` says already.
  const Inputs arguments = node.op_type() == "Expand" ? Inputs{inputs[0]} : inputs;
  if (function->second.arity > 0 && arguments.size() != function->second.arity) return std::nullopt;
  return fold_elementwise(function->second, arguments, dims);
}

// One piece per output, in order along the axis.
std::optional<std::vector<Constant>> split(const onnx::NodeProto& node, const Constant& data,
                                           const std::vector<onnx::TypeProto>& outputs) {
  const auto axis = axis_of(int_attribute(node, "axis", 0), data.dims.size());
  if (!axis || data.dims.size() != 1) return std::nullopt;
  std::vector<Constant> pieces;
  auto next = data.values.begin();
  for (const onnx::TypeProto& output : outputs) {
    const std::optional<Shape> dims = dims_of(output);
    if (!dims || dims->size() != 1 || (*dims)[0] == kUnknown || (*dims)[0] > data.values.end() - next)
      return std::nullopt;
    pieces.push_back({data.element, *dims, {next, next + (*dims)[0]}});
    next += (*dims)[0];
  }
  return pieces;
}

}  // namespace

std::optional<std::vector<Constant>> fold(const onnx::NodeProto& node, const Inputs& inputs,
                                          const std::vector<onnx::TypeProto>& outputs) {
  if (!domain_of(node).empty() || outputs.empty()) return std::nullopt;
  if (node.op_type() == "Split" && !inputs.empty() && inputs[0] != nullptr) return split(node, *inputs[0], outputs);
  if (outputs.size() != 1 || !is_tensor(outputs[0]) || !is_complete(outputs[0])) return std::nullopt;
  const Shape dims = *dims_of(outputs[0]);
  const Index count = element_count(dims, describe(node));
  if (count > kMostFolded) return std::nullopt;
  if (count == 0) return std::vector<Constant>{{element_of(outputs[0]), dims, {}}};
  for (const Constant* input : inputs)
    if (input != nullptr && input->values.empty()) return std::nullopt;
  std::optional<Values> values = fold_values(node, inputs, outputs[0], dims);
  if (!values || static_cast<Index>(values->size()) != product(dims)) return std::nullopt;
  return std::vector<Constant>{{element_of(outputs[0]), dims, std::move(*values)}};
}

std::optional<Constant> fold_shape(const onnx::NodeProto& node, const onnx::TypeProto& input) {
  const bool shape = node.op_type() == "Shape", size = node.op_type() == "Size";
  if (!domain_of(node).empty() || !(shape || size) || !is_tensor(input) || !is_complete(input)) return std::nullopt;
  const Shape dims = *dims_of(input);
  Constant constant{TensorProto::INT64, {}, {}};
  if (size) {
    constant.values.push_back(static_cast<double>(element_count(dims, describe(node))));
    return constant;
  }
  const auto rank = static_cast<Index>(dims.size());
  const auto clamped = [&](Index at) { return std::clamp<Index>(at < 0 ? at + rank : at, 0, rank); };
  const Index start = clamped(int_attribute(node, "start", 0)), end = clamped(int_attribute(node, "end", rank));
  for (Index i = start; i < end; ++i) constant.values.push_back(static_cast<double>(dims[static_cast<std::size_t>(i)]));
  constant.dims = {static_cast<Index>(constant.values.size())};
  return constant;
}

}  // namespace doppler::program
