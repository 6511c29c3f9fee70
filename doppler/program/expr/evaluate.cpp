#include "doppler/program/expr/evaluate.h"

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

using Complex = std::complex<double>;

// Steps in a row-major array of `shape` for each label of the join space; 0 where the array lacks the label.
std::vector<Index> strides(const Shape& shape, std::span<const std::uint32_t> labels, std::size_t label_count) {
  std::vector<Index> result(label_count, 0);
  Index step = 1;
  for (std::size_t i = labels.size(); i-- > 0;) {
    result[labels[i]] = step;
    step *= shape[i];
  }
  return result;
}

Dense evaluate_einsum(const Node& node, const Einsum& einsum, const Rect& block, std::span<const Dense> operands,
                      const Variables& variables) {
  const std::size_t label_count = einsum.labels.size();
  std::vector<std::vector<Index>> steps;
  for (std::size_t k = 0; k < operands.size(); ++k)
    steps.push_back(strides(operands[k].shape, einsum.operands[k], label_count));
  Dense result(output_region(node, block).shape());
  std::vector<std::uint32_t> output_labels(node.shape.size());
  for (std::uint32_t i = 0; i < output_labels.size(); ++i) output_labels[i] = i;
  const std::vector<Index> output_steps = strides(result.shape, output_labels, label_count);
  const auto at = [](const std::vector<Index>& step, const std::vector<Index>& index) {
    Index offset = 0;
    for (std::size_t i = 0; i < step.size(); ++i) offset += step[i] * index[i];
    return static_cast<std::size_t>(offset);
  };
  if (einsum.aggregate)
    for (Complex& value : result.values) value = neutral(*einsum.aggregate);
  std::vector<Complex> arguments(operands.size());
  for_each_index(Rect::whole(block.shape()), [&](const std::vector<Index>& index) {
    for (std::size_t k = 0; k < operands.size(); ++k) arguments[k] = operands[k].values[at(steps[k], index)];
    const Complex joined = einsum.join.evaluate(arguments, variables);
    Complex& value = result.values[at(output_steps, index)];
    value = einsum.aggregate ? fold(*einsum.aggregate, value, joined) : joined;
  });
  return result;
}

Dense evaluate_complexer(const Node& node, const Rect& block, const Dense& operand) {
  Dense result(block.shape());
  const bool to_complex = is_complex(node.dtype);
  const Rect read = operand_region(node, 0, {}, block);
  std::size_t position = 0;
  for_each_index(block, [&](std::vector<Index> index) {
    const Index x = index.back();
    index.back() = to_complex ? 2 * x : x / 2;
    for (std::size_t i = 0; i < index.size(); ++i) index[i] -= read.begin[i];
    const auto at = static_cast<std::size_t>(offset_in(operand.shape, index));
    const Complex value = operand.values[at];
    result.values[position++] = to_complex   ? Complex(value.real(), operand.values[at + 1].real())
                                : x % 2 == 0 ? Complex(value.real())
                                             : Complex(value.imag());
  });
  return result;
}

Dense evaluate_fill(const Fill& fill, const Rect& block) {
  Dense result(block.shape());
  std::size_t position = 0;
  for_each_index(block, [&](const std::vector<Index>& index) {
    const std::size_t rank = index.size();
    const bool above = rank >= 2 && index[rank - 1] > index[rank - 2];
    result.values[position++] = above ? fill.above : fill.value;
  });
  return result;
}

Dense evaluate_concat(const Node& node, const Concat& concat, const Rect& block, std::span<const Dense> operands) {
  Dense result(block.shape());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    Rect target = block;  // the part of the block that operand k fills
    const Index end = k + 1 < concat.begins.size() ? concat.begins[k + 1] : node.shape[concat.axis];
    target.begin[concat.axis] = std::max(block.begin[concat.axis], concat.begins[k]);
    target.end[concat.axis] = std::max(target.begin[concat.axis], std::min(block.end[concat.axis], end));
    if (target.volume() > 0) paste(operands[k], target, result, block);
  }
  return result;
}

Dense evaluate_formation(Aggregate aggregate, std::span<const Dense> partials) {
  Dense result = partials[0];
  for (const Dense& partial : partials.subspan(1))
    for (std::size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = fold(aggregate, result.values[i], partial.values[i]);
  return result;
}

}  // namespace

Dense cut(const Dense& dense, const Rect& covers, const Rect& region) {
  Dense result(region.shape());
  const Rect local = shifted(region, covers.begin, -1);
  std::size_t position = 0;
  for_each_index(local, [&](const std::vector<Index>& index) {
    result.values[position++] = dense.values[static_cast<std::size_t>(offset_in(dense.shape, index))];
  });
  return result;
}

void paste(const Dense& piece, const Rect& region, Dense& dense, const Rect& covers) {
  const Rect local = shifted(region, covers.begin, -1);
  std::size_t position = 0;
  for_each_index(local, [&](const std::vector<Index>& index) {
    dense.values[static_cast<std::size_t>(offset_in(dense.shape, index))] = piece.values[position++];
  });
}

Dense evaluate_block(const Node& node, const Rect& block, std::span<const Dense> operands, const Variables& variables) {
  if (const Einsum* einsum = node.as<Einsum>()) return evaluate_einsum(node, *einsum, block, operands, variables);
  if (const Formation* formation = node.as<Formation>()) return evaluate_formation(formation->aggregate, operands);
  if (const Fill* fill = node.as<Fill>()) return evaluate_fill(*fill, block);
  if (const Concat* concat = node.as<Concat>()) return evaluate_concat(node, *concat, block, operands);
  if (node.as<Complexer>() != nullptr) return evaluate_complexer(node, block, operands[0]);
  DOPPLER_CHECK(node.as<Stencil>() == nullptr, "'{}' is an op of an imported model, which has no values", node.name);
  DOPPLER_CHECK(node.as<Input>() == nullptr, "'{}' is an input, which is given and not computed", node.name);
  Dense result = operands[0];  // select and squeeze: the same elements in the same order
  result.shape = block.shape();
  return result;
}

std::vector<Dense> evaluate(const Program& program, const Values& inputs, const Variables& variables) {
  std::vector<Dense> values;
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    if (node.as<Input>() != nullptr) {
      const auto found = inputs.find(id);
      if (found == inputs.end() || found->second.shape != node.shape)
        throw InputError(
            fmt::format("input '{}': found no value of its shape; required {}", node.name, to_string(node.shape)));
      values.push_back(found->second);
      continue;
    }
    const Rect whole = Rect::whole(node.join_shape());
    std::vector<Dense> operands;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Dense& source = values[node.inputs[k]];
      const Rect region = operand_region(node, k, source.shape, whole);
      operands.push_back(cut(source, Rect::whole(source.shape), region));
    }
    values.push_back(evaluate_block(node, whole, operands, variables));
  }
  return values;
}

}  // namespace doppler::program
