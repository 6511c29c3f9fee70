#include "doppler/program/cut/plan_cost.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

// How a block grid of `node` looks from operand k: pieces per dimension of that operand.
Box required_box(const Node& node, std::size_t operand, const Shape& input_shape, const Box& box) {
  Box result;
  if (const Einsum* einsum = node.as<Einsum>()) {
    for (const std::uint32_t label : einsum->operands[operand]) result.push_back(box[label]);
    return result;
  }
  if (const Stencil* stencil = node.as<Stencil>()) {
    for (const Stencil::Span& span : stencil->operands[operand]) result.push_back(span.axis ? box[*span.axis] : 1);
    return result;
  }
  if (node.as<Squeeze>() == nullptr) return box;
  std::size_t i = 0;
  for (const Index size : input_shape) {
    while (size != 1 && node.shape[i] == 1) ++i;
    result.push_back(size == 1 ? 1 : box[i++]);
  }
  return result;
}

double blocks_of(const Box& box) { return static_cast<double>(product(box)); }

}  // namespace

void operator+=(PlanCost& sum, const PlanCost& added) {
  sum.seconds += added.seconds;
  sum.compute += added.compute;
  sum.moved += added.moved;
  sum.messages += added.messages;
  sum.resident += added.resident;
}

PlanCosts::PlanCosts(const Program& program, const DecomposeOptions& options)
    : program_(program),
      speeds_(options.speeds),
      devices_(options.devices > 0 ? options.devices : options.parts),
      resident_(program.size(), 0) {
  const std::vector<char> updated = program.updated_inputs();
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    resident_[id] = node.as<Input>() != nullptr ? !updated[id] : node.is_view() && resident_[node.inputs[0]];
  }
}

bool PlanCosts::has_edge(ExprId id, std::size_t operand) const { return !resident_[program_.node(id).inputs[operand]]; }

double PlanCosts::operand_bytes(ExprId id, std::size_t operand) const {
  const Node& node = program_.node(id);
  const Node& source = program_.node(node.inputs[operand]);
  const Rect region = operand_region(node, operand, source.shape, Rect::whole(node.join_shape()));
  return static_cast<double>(region.volume()) * static_cast<double>(size_of(source.dtype));
}

PlanCost PlanCosts::moving(double bytes, double messages, double blocks) const {
  const double links = std::min(blocks, devices());
  PlanCost cost;
  cost.moved = bytes;
  cost.messages = messages;
  cost.seconds = (bytes / speeds_.link_bytes_per_second + speeds_.latency * messages) / links;
  return cost;
}

PlanCost PlanCosts::own(ExprId id, const Box& box) const {
  const Node& node = program_.node(id);
  const double blocks = blocks_of(box), in_a_row = std::ceil(blocks / devices());
  PlanCost cost;
  if (node.as<Input>() != nullptr || node.is_view()) return cost;
  double read = 0;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Box required = required_box(node, k, program_.node(node.inputs[k]).shape, box);
    const double all = operand_bytes(id, k) * blocks / blocks_of(required);
    read += all;
    if (!has_edge(id, k)) cost.resident += all;
  }
  if (const Stencil* stencil = node.as<Stencil>(); stencil != nullptr && stencil->read)
    read = static_cast<double>(*stencil->read);
  Box output = box;
  output.resize(node.shape.size());
  const double output_blocks = blocks_of(output), copies = blocks / output_blocks;
  const auto written = static_cast<double>(node.bytes());
  const Rect whole = Rect::whole(node.join_shape());
  const auto time = [&](Flops flops, double bytes, double count) {
    return block_time(speeds_, flops / count, static_cast<Bytes>(bytes / count));
  };
  cost.compute = in_a_row * time(block_flops(node, whole), read + copies * written, blocks);
  const Einsum* einsum = node.as<Einsum>();
  if (einsum != nullptr && einsum->aggregate) {
    const double folds = (copies - 1) * static_cast<double>(product(node.shape));
    cost.compute += std::ceil(output_blocks / devices()) * time(folds, (copies + 1) * written, output_blocks);
  }
  cost.seconds = cost.compute;
  if (copies > 1) cost += moving(written * (copies - 1), blocks - output_blocks, blocks);
  return cost;
}

PlanCost PlanCosts::edge(ExprId id, std::size_t operand, const Box& produced, const Box& box) const {
  const Node& node = program_.node(id);
  const Box required = required_box(node, operand, program_.node(node.inputs[operand]).shape, box);
  double stays = 1, pieces = 1;
  for (std::size_t i = 0; i < required.size(); ++i) {
    const auto [small, large] = std::minmax(produced[i], required[i]);
    stays *= static_cast<double>(small) / static_cast<double>(large);
    pieces *= std::ceil(static_cast<double>(produced[i]) / static_cast<double>(required[i]));
  }
  const double blocks = blocks_of(box), copies = blocks / blocks_of(required);
  const double share = copies - stays;
  if (share <= 0) return {};
  return moving(operand_bytes(id, operand) * share, blocks * pieces, blocks);
}

PlanCost PlanCosts::least_edge(ExprId id, std::size_t operand, const Box& box) const {
  const Node& node = program_.node(id);
  return edge(id, operand, required_box(node, operand, program_.node(node.inputs[operand]).shape, box), box);
}

bool PlanCosts::fits(ExprId id, const Box& box) const {
  if (speeds_.memory == 0) return true;
  const Node& node = program_.node(id);
  Box output = box;
  output.resize(node.shape.size());
  double needed = static_cast<double>(node.bytes()) / blocks_of(output);
  for (std::size_t k = 0; k < node.inputs.size(); ++k)
    needed += operand_bytes(id, k) / blocks_of(required_box(node, k, program_.node(node.inputs[k]).shape, box));
  return needed <= static_cast<double>(speeds_.memory);
}

PlanCost estimate(const Program& program, const Plan& plan, const DecomposeOptions& options) {
  check(program, plan);
  const PlanCosts costs(program, options);
  const std::vector<char> needed = live(program);
  PlanCost total;
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    if (!needed[id] || node.as<Formation>() != nullptr) continue;
    total += costs.own(id, plan[id]);
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (costs.has_edge(id, k)) total += costs.edge(id, k, plan[node.inputs[k]], plan[id]);
  }
  return total;
}

}  // namespace doppler::program
