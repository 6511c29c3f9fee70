#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/roofline.h"
#include "doppler/program/lower/lower.h"

namespace doppler::program {

Plan uncut(const Program& program) {
  Plan plan;
  for (ExprId id = 0; id < program.size(); ++id) plan.emplace_back(program.node(id).join_shape().size(), 1);
  return plan;
}

void complete(const Program& program, Plan& plan) {
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    if (node.as<Formation>() == nullptr) continue;
    plan[id] = plan[node.inputs[0]];
    plan[id].resize(node.shape.size());
  }
  for (const Program::Update& update : program.updates()) plan[update.old] = plan[update.next];
}

void check(const Program& program, const Plan& plan) {
  DOPPLER_CHECK(plan.size() == program.size(), "plan: found {} boxes for {} expressions", plan.size(), program.size());
  const auto refuse = [&](ExprId id, const std::string& required) {
    throw InputError(fmt::format("plan: '{}' of {} is cut {}; required {}", program.node(id).name,
                                 to_string(program.node(id).join_shape()), to_string(plan[id]), required));
  };
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    const Shape most = node.most_pieces();
    if (plan[id].size() != most.size()) refuse(id, "one number of pieces per label");
    for (std::size_t i = 0; i < most.size(); ++i)
      if (plan[id][i] < 1 || plan[id][i] > most[i])
        refuse(id,
               node.as<Stencil>() != nullptr ? "at most " + to_string(most) : "between 1 piece and one per element");
    if (node.as<Formation>() == nullptr) continue;
    Box produced = plan[node.inputs[0]];
    produced.resize(node.shape.size());
    if (plan[id] != produced) refuse(id, "the cuts of what it forms, " + to_string(produced));
  }
  for (const Program::Update& update : program.updates())
    if (plan[update.old] != plan[update.next])
      refuse(update.old, "the cuts of its next value, " + to_string(plan[update.next]));
}

std::vector<char> live(const Program& program) {
  const bool all = program.outputs().empty() && program.updates().empty();
  std::vector<char> result(program.size(), all ? 1 : 0);
  for (const ExprId id : program.outputs()) result[id] = 1;
  for (const Program::Update& update : program.updates()) result[update.old] = result[update.next] = 1;
  for (ExprId id = program.size(); id-- > 0;)
    if (result[id])
      for (const ExprId input : program.node(id).inputs) result[input] = 1;
  return result;
}

Seconds block_time(const Speeds& speeds, Flops flops, Bytes bytes) {
  return roofline(speeds.overhead, flops, speeds.flops_per_second, static_cast<double>(bytes),
                  speeds.memory_bytes_per_second);
}

std::string_view to_string(CostMode mode) {
  switch (mode) {
    case CostMode::per_block:
      return "per-block";
    case CostMode::published:
      return "published";
    case CostMode::seconds:
      return "seconds";
  }
  throw InternalError("cost mode: unknown value; required one of CostMode");
}

CostMode parse_cost_mode(std::string_view text) {
  for (const CostMode mode : {CostMode::per_block, CostMode::published, CostMode::seconds})
    if (to_string(mode) == text) return mode;
  throw InputError(fmt::format("costs: found '{}'; required per-block, published or seconds", text));
}

}  // namespace doppler::program
