#include <algorithm>
#include <optional>

#include "doppler/program/cut/plan_cost.h"

namespace doppler::program {
namespace {

using Dimension = std::optional<std::size_t>;

// The largest number of pieces that divides `parts` and that `size` elements allow.
Index pieces_for(Index size, Index parts) {
  Index pieces = std::min(size, parts);
  while (parts % pieces != 0) --pieces;
  return pieces;
}

// The dimension of `node` that corresponds to dimension `cut` of input k, for all but einsums.
Dimension follow(const Node& node, std::size_t k, const Shape& input_shape, std::size_t cut) {
  if (const Stencil* stencil = node.as<Stencil>()) return stencil->operands[k][cut].axis;
  if (node.as<Squeeze>() == nullptr) return cut;
  const auto larger = [](const Shape& shape, std::size_t end) {
    return std::count_if(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(end),
                         [](Index size) { return size != 1; });
  };
  if (input_shape[cut] == 1) return std::nullopt;
  const auto rank = larger(input_shape, cut);
  for (std::size_t i = 0; i < node.shape.size(); ++i)
    if (node.shape[i] != 1 && larger(node.shape, i) == rank) return i;
  return std::nullopt;
}

// Cuts one label per expression: the one that an input is cut along, else what `fresh` says.
template <typename Fresh>
Plan propagate(const Program& program, std::vector<Dimension> cut, Index parts, Fresh fresh) {
  Plan plan = uncut(program);
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    const Einsum* einsum = node.as<Einsum>();
    Dimension label = cut[id];
    for (std::size_t k = 0; k < node.inputs.size() && !label; ++k) {
      const Dimension source = cut[node.inputs[k]];
      if (!source) continue;
      label = einsum != nullptr ? Dimension(einsum->operands[k][*source])
                                : follow(node, k, program.node(node.inputs[k]).shape, *source);
    }
    if (!label) label = fresh(node);
    if (!label) continue;
    plan[id][*label] = pieces_for(node.most_pieces()[*label], parts);
    if (*label < node.shape.size()) cut[id] = label;
  }
  complete(program, plan);
  return plan;
}

bool is_data(const Node& node) {
  const Input* input = node.as<Input>();
  return input != nullptr && !input->weight;
}

Plan cut_along(const Program& program, ExprId input, std::size_t dimension, Index parts) {
  std::vector<Dimension> cut(program.size());
  cut[input] = dimension;
  return propagate(program, std::move(cut), parts, [](const Node&) { return Dimension(); });
}

}  // namespace

Plan data_parallel(const Program& program, Index parts) {
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    if (!is_data(node)) continue;
    for (std::size_t i = 0; i < node.shape.size(); ++i)
      if (node.shape[i] >= parts) return cut_along(program, id, i, parts);
  }
  return uncut(program);
}

Plan model_parallel(const Program& program, Index parts) {
  // The first label that is long enough: heads before head size.
  const auto weight_label = [&](const Node& node) -> Dimension {
    const Einsum* einsum = node.as<Einsum>();
    if (einsum == nullptr || !einsum->is_contraction()) return std::nullopt;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Input* input = program.node(node.inputs[k]).as<Input>();
      if (input == nullptr || !input->weight) continue;
      for (const std::uint32_t label : einsum->operands[k])
        if (label < node.shape.size() && einsum->sizes[label] >= parts) return label;
    }
    return std::nullopt;
  };
  return propagate(program, std::vector<Dimension>(program.size()), parts, weight_label);
}

std::vector<Plan> single_cut_plans(const Program& program, Index parts) {
  std::vector<Plan> plans = {model_parallel(program, parts)};
  for (ExprId id = 0; id < program.size(); ++id) {
    if (!is_data(program.node(id)) || program.node(id).shape.empty()) continue;
    for (std::size_t i = 0; i < program.node(id).shape.size(); ++i) plans.push_back(cut_along(program, id, i, parts));
    break;
  }
  return plans;
}

}  // namespace doppler::program
