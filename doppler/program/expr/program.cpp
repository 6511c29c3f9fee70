#include "doppler/program/expr/program.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

void check_shape(const std::string& what, const Shape& shape) {
  Index total = 1;
  for (const Index size : shape) {
    if (size < 1) throw InputError(fmt::format("{}: found size {}; required at least 1", what, size));
    if (size > kMostElements / total)
      throw InputError(
          fmt::format("{}: found shape {}; required at most {} elements", what, to_string(shape), kMostElements));
    total *= size;
  }
}

std::vector<std::vector<std::string>> split_labels(std::string_view text, std::vector<std::string>& output) {
  std::vector<std::vector<std::string>> inputs(1);
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos)
    throw InputError(fmt::format("einsum '{}': found no '->'; required e.g. 'ij,jk->ik'", text));
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      inputs.emplace_back();
    else if (c != ' ')
      inputs.back().emplace_back(1, c);
  }
  for (const char c : text.substr(arrow + 2))
    if (c != ' ') output.emplace_back(1, c);
  return inputs;
}

bool same_but_for_ones(const Shape& a, const Shape& b) {
  const auto larger = [](Shape shape) {
    std::erase(shape, 1);
    return shape;
  };
  return larger(a) == larger(b);
}

Expr elementwise(Expr a, Expr b, const Scalar& f) { return a.program->map({a, b}, f); }

}  // namespace

const Shape& Expr::shape() const { return program->node(id).shape; }
DType Expr::dtype() const { return program->node(id).dtype; }

Program::Scope::Scope(Program& program, std::string_view prefix) : program_(program), length_(program.prefix_.size()) {
  program_.prefix_ += prefix;
  program_.prefix_ += '.';
}

Expr Program::add(std::string name, std::string_view fallback, Node node) {
  node.name = prefix_ + (name.empty() ? std::string(fallback) : std::move(name));
  const unsigned used = names_[node.name]++;
  if (used > 0) {
    // "softmax", "softmax#2", …: '#' cannot stand in a name that a user chose.
    node.name += fmt::format("#{}", used + 1);
  }
  nodes_.push_back(std::move(node));
  return {this, size() - 1};
}

std::string Program::describe(ExprId id) const { return fmt::format("'{}'", nodes_[id].name); }

Expr Program::input(std::string name, Shape shape, DType dtype) {
  check_shape(fmt::format("input '{}'", name), shape);
  return add(std::move(name), "input",
             {.name = {}, .dtype = dtype, .shape = std::move(shape), .inputs = {}, .computation = Input{false}});
}

Expr Program::weight(std::string name, Shape shape, DType dtype) {
  const Expr result = input(std::move(name), std::move(shape), dtype);
  nodes_[result.id].computation = Input{true};
  return result;
}

Expr Program::einsum(std::string_view labels, const std::vector<Expr>& inputs, EinsumOptions options) {
  std::vector<std::string> output;
  const auto input_labels = split_labels(labels, output);
  return einsum(input_labels, output, inputs, std::move(options));
}

void Program::check_sizes(const std::string& what, Einsum& einsum, const std::vector<Expr>& inputs,
                          const std::map<std::string, Index>& given) const {
  constexpr Index kUnknown = 0;
  einsum.sizes.assign(einsum.labels.size(), kUnknown);
  std::vector<std::string> source(einsum.labels.size());
  const auto set = [&](std::uint32_t label, Index size, const std::string& from) {
    if (einsum.sizes[label] != kUnknown && einsum.sizes[label] != size)
      throw InputError(fmt::format("{}: label '{}' is {} in {} and {} in {}; required one size per label", what,
                                   einsum.labels[label], einsum.sizes[label], source[label], size, from));
    einsum.sizes[label] = size;
    source[label] = from;
  };
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t i = 0; i < einsum.operands[k].size(); ++i)
      set(einsum.operands[k][i], inputs[k].shape()[i], describe(inputs[k].id));
  for (std::uint32_t label = 0; label < einsum.labels.size(); ++label) {
    const auto found = given.find(einsum.labels[label]);
    if (found != given.end()) set(label, found->second, "the given sizes");
    if (einsum.sizes[label] == kUnknown)
      throw InputError(
          fmt::format("{}: label '{}' is in no input; required a size for it", what, einsum.labels[label]));
  }
  check_shape(what, einsum.sizes);
}

// Numbers the labels, the output's first, and checks that each input has as many different ones as
// dimensions.
Einsum Program::number_labels(const std::string& what, const LabelLists& inputs_labels,
                              const std::vector<std::string>& output, const std::vector<Expr>& inputs) const {
  Einsum einsum;
  einsum.labels = output;
  const auto label_id = [&](const std::string& label) {
    const auto found = std::find(einsum.labels.begin(), einsum.labels.end(), label);
    if (found == einsum.labels.end()) return einsum.labels.push_back(label), einsum.labels.size() - 1;
    return static_cast<std::size_t>(found - einsum.labels.begin());
  };
  const auto check_distinct = [&](std::vector<std::string> labels, const std::string& where) {
    std::sort(labels.begin(), labels.end());
    const auto twice = std::adjacent_find(labels.begin(), labels.end());
    if (twice != labels.end())
      throw InputError(
          fmt::format("{}: label '{}' stands twice in {}; required different labels", what, *twice, where));
  };
  if (inputs.empty() || inputs_labels.size() != inputs.size())
    throw InputError(fmt::format("{}: found labels for {} inputs; required one list per input, at least one", what,
                                 inputs_labels.size()));
  check_distinct(output, "the output");
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs_labels[k].size() != inputs[k].rank())
      throw InputError(fmt::format("{}: {} has rank {} and {} labels; required one label per dimension", what,
                                   describe(inputs[k].id), inputs[k].rank(), inputs_labels[k].size()));
    check_distinct(inputs_labels[k], describe(inputs[k].id));
    einsum.operands.emplace_back();
    for (const std::string& label : inputs_labels[k])
      einsum.operands.back().push_back(static_cast<std::uint32_t>(label_id(label)));
  }
  return einsum;
}

Expr Program::add_formed(std::string name, Node node) {
  const std::string kind(kernel_kind(node));
  const std::optional<Aggregate> aggregate = node.as<Einsum>()->aggregate;
  if (!aggregate) return add(std::move(name), kind, std::move(node));
  if (name.empty()) name = kind;
  Node formation{
      .name = {}, .dtype = node.dtype, .shape = node.shape, .inputs = {}, .computation = Formation{*aggregate}};
  formation.inputs = {add(name + ".partial", kind, std::move(node)).id};
  return add(std::move(name), kind, std::move(formation));
}

Expr Program::einsum(const LabelLists& inputs_labels, const std::vector<std::string>& output,
                     const std::vector<Expr>& inputs, EinsumOptions options) {
  Node node;
  std::vector<std::string> operand_names;
  std::vector<DType> dtypes;
  for (const Expr input : inputs) {
    DOPPLER_CHECK(input.program == this, "einsum: found an input of another program");
    const Einsum* partial = nodes_[input.id].as<Einsum>();
    DOPPLER_CHECK(partial == nullptr || !partial->aggregate, "{} is not formed", describe(input.id));
    operand_names.push_back(describe(input.id));
    dtypes.push_back(input.dtype());
    node.inputs.push_back(input.id);
  }
  const std::string what = fmt::format("einsum {}of {}", options.name.empty() ? "" : "'" + options.name + "' ",
                                       fmt::join(operand_names, ", "));
  Einsum einsum = number_labels(what, inputs_labels, output, inputs);
  check_sizes(what, einsum, inputs, options.sizes);

  einsum.join = Scalar(1.0);
  for (std::uint32_t k = 0; k < inputs.size(); ++k) einsum.join = einsum.join * Scalar::argument(k);
  if (options.join) einsum.join = *options.join;
  DOPPLER_CHECK(einsum.join.argument_count() <= inputs.size(), "{}: join reads too many inputs", what);
  const bool reduces = einsum.labels.size() > output.size();
  if (reduces) einsum.aggregate = options.aggregate.value_or(Aggregate::sum);
  if (!reduces && options.aggregate)
    throw InputError(fmt::format("{}: found an aggregation over no label; required a reduced label", what));
  try {
    node.dtype = einsum.join.dtype(dtypes);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", what, error.what()));
  }
  node.shape.assign(einsum.sizes.begin(), einsum.sizes.begin() + static_cast<std::ptrdiff_t>(output.size()));
  node.computation = std::move(einsum);
  return add_formed(std::move(options.name), std::move(node));
}

Expr Program::map(const std::vector<Expr>& inputs, Scalar f, std::string name) {
  DOPPLER_CHECK(!inputs.empty(), "map: found no inputs");
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < inputs[0].rank(); ++i) labels.push_back(fmt::format("i{}", i));
  return einsum(std::vector(inputs.size(), labels), labels, inputs, {.join = std::move(f), .name = std::move(name)});
}

Expr Program::select(Expr input, Rect region, std::string name) {
  const bool fits = region.begin.size() == input.rank() && region.end.size() == input.rank();
  bool inside = fits;
  for (std::size_t i = 0; inside && i < input.rank(); ++i)
    inside = 0 <= region.begin[i] && region.begin[i] < region.end[i] && region.end[i] <= input.shape()[i];
  if (!inside)
    throw InputError(fmt::format("select of {}: found the rectangle {} to {}; required a part of shape {}",
                                 describe(input.id), to_string(region.begin), to_string(region.end),
                                 to_string(input.shape())));
  Node node{.name = {},
            .dtype = input.dtype(),
            .shape = region.shape(),
            .inputs = {input.id},
            .computation = Select{std::move(region)}};
  return add(std::move(name), "select", std::move(node));
}

Expr Program::concat(const std::vector<Expr>& inputs, std::size_t axis, std::string name) {
  DOPPLER_CHECK(!inputs.empty(), "concat: found no inputs");
  Node node{.name = {}, .dtype = inputs[0].dtype(), .shape = inputs[0].shape(), .inputs = {}, .computation = Concat{}};
  Concat concat{axis, {}};
  if (axis >= node.shape.size())
    throw InputError(fmt::format("concat of {}: found axis {}; required one below the rank {}", describe(inputs[0].id),
                                 axis, node.shape.size()));
  node.shape[axis] = 0;
  for (const Expr input : inputs) {
    Shape expected = node.shape;
    if (input.rank() == expected.size()) expected[axis] = input.shape()[axis];
    if (input.shape() != expected || input.dtype() != node.dtype)
      throw InputError(
          fmt::format("concat: {} is {} {} and {} is {} {}; required one dtype, and one shape but for axis {}",
                      describe(inputs[0].id), to_string(inputs[0].dtype()), to_string(inputs[0].shape()),
                      describe(input.id), to_string(input.dtype()), to_string(input.shape()), axis));
    concat.begins.push_back(node.shape[axis]);
    node.shape[axis] += input.shape()[axis];
    node.inputs.push_back(input.id);
  }
  check_shape("concat", node.shape);
  node.computation = std::move(concat);
  return add(std::move(name), "concat", std::move(node));
}

Expr Program::fill(Shape shape, DType dtype, Fill fill, std::string name) {
  check_shape("fill", shape);
  return add(std::move(name), "fill",
             {.name = {}, .dtype = dtype, .shape = std::move(shape), .inputs = {}, .computation = fill});
}

Expr Program::reshape_ones(Expr input, Shape shape, std::string name) {
  if (!same_but_for_ones(input.shape(), shape))
    throw InputError(fmt::format("squeeze of {}: found {} from {}; required shapes that differ in ones only",
                                 describe(input.id), to_string(shape), to_string(input.shape())));
  Node node{
      .name = {}, .dtype = input.dtype(), .shape = std::move(shape), .inputs = {input.id}, .computation = Squeeze{}};
  return add(std::move(name), "squeeze", std::move(node));
}

Expr Program::to_complex(Expr input, std::string name) {
  if (is_complex(input.dtype()) || input.rank() == 0 || input.shape().back() % 2 != 0)
    throw InputError(fmt::format("to_complex of {}: found {} {}; required a real dtype and an even last dimension",
                                 describe(input.id), to_string(input.dtype()), to_string(input.shape())));
  Node node{.name = {},
            .dtype = complex_of(input.dtype()),
            .shape = input.shape(),
            .inputs = {input.id},
            .computation = Complexer{}};
  node.shape.back() /= 2;
  return add(std::move(name), "to_complex", std::move(node));
}

Expr Program::to_real(Expr input, std::string name) {
  if (!is_complex(input.dtype()) || input.rank() == 0)
    throw InputError(fmt::format("to_real of {}: found {} {}; required a complex dtype and a dimension",
                                 describe(input.id), to_string(input.dtype()), to_string(input.shape())));
  Node node{.name = {},
            .dtype = real_of(input.dtype()),
            .shape = input.shape(),
            .inputs = {input.id},
            .computation = Complexer{}};
  node.shape.back() *= 2;
  return add(std::move(name), "to_real", std::move(node));
}

Expr Program::stencil(const std::vector<Expr>& inputs, Shape shape, DType dtype, Stencil stencil, std::string name) {
  check_shape(fmt::format("'{}'", name), shape);
  DOPPLER_CHECK(stencil.most_pieces.size() == shape.size() && stencil.operands.size() == inputs.size(),
                "'{}': a stencil for another shape or other inputs", name);
  Node node{.name = {}, .dtype = dtype, .shape = std::move(shape), .inputs = {}, .computation = Input{}};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    DOPPLER_CHECK(stencil.operands[k].size() == inputs[k].rank(), "'{}': spans for another rank", name);
    for (const Stencil::Span& span : stencil.operands[k])
      DOPPLER_CHECK(!span.axis || *span.axis < node.shape.size(), "'{}': a span along no axis", name);
    node.inputs.push_back(inputs[k].id);
  }
  const std::string kind = stencil.kind;
  node.computation = std::move(stencil);
  return add(std::move(name), kind, std::move(node));
}

Expr Program::convert(Expr input, DType dtype, std::string name) {
  if (input.dtype() == dtype) return input;
  if (is_complex(input.dtype()) != is_complex(dtype))
    throw InputError(fmt::format("convert of {}: found {} to {}; required both real or both complex",
                                 describe(input.id), to_string(input.dtype()), to_string(dtype)));
  return map({input}, program::convert(dtype, Scalar::argument(0)), name.empty() ? "cast" : std::move(name));
}

void Program::mark_output(Expr expr) {
  if (std::find(outputs_.begin(), outputs_.end(), expr.id) == outputs_.end()) outputs_.push_back(expr.id);
}

void Program::set_outputs(const std::vector<Expr>& outputs) {
  outputs_.clear();
  for (const Expr expr : outputs) mark_output(expr);
}

void Program::mark_update(Expr old, Expr next) {
  DOPPLER_CHECK(nodes_[old.id].as<Input>() != nullptr, "{} is updated but no input", describe(old.id));
  DOPPLER_CHECK(old.shape() == next.shape() && old.dtype() == next.dtype(), "{} changes its shape or dtype",
                describe(old.id));
  updates_.push_back({old.id, next.id});
}

std::vector<ExprId> Program::weights() const {
  std::vector<ExprId> result;
  for (ExprId id = 0; id < size(); ++id)
    if (const Input* input = nodes_[id].as<Input>(); input != nullptr && input->weight) result.push_back(id);
  return result;
}

std::vector<char> Program::updated_inputs() const {
  std::vector<char> result(nodes_.size(), 0);
  for (const Update& update : updates_) result[update.old] = 1;
  return result;
}

Expr operator+(Expr a, Expr b) { return elementwise(a, b, Scalar::argument(0) + Scalar::argument(1)); }
Expr operator-(Expr a, Expr b) { return elementwise(a, b, Scalar::argument(0) - Scalar::argument(1)); }
Expr operator*(Expr a, Expr b) { return elementwise(a, b, Scalar::argument(0) * Scalar::argument(1)); }
Expr operator/(Expr a, Expr b) { return elementwise(a, b, Scalar::argument(0) / Scalar::argument(1)); }
Expr operator*(double factor, Expr a) { return a.program->map({a}, factor * Scalar::argument(0), "scale"); }

}  // namespace doppler::program
