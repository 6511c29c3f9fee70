#include "doppler/program/relational/relational_plan.h"

#include "doppler/program/cut/plan_cost.h"
#include "doppler/program/relational/physical.h"

namespace doppler::program {
namespace {

// EinDecomp's plans that are priced again. They differ little from one another, so it takes a few dozen to have others.
constexpr std::size_t kPlans = 32;

unsigned sites_of(const DecomposeOptions& options) {
  return static_cast<unsigned>(options.devices > 0 ? options.devices : options.parts);
}

bool is_relational(const Node& node) { return node.as<Einsum>() != nullptr || node.as<Formation>() != nullptr; }

// Prices what the algebra does not see: expressions that are no einsum, and the edges to and from them.
Seconds other_seconds(const Program& program, const Plan& plan, const DecomposeOptions& options) {
  const PlanCosts costs(program, options);
  const std::vector<char> needed = live(program);
  PlanCost total;
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    if (!needed[id] || node.as<Formation>() != nullptr) continue;
    const bool relational = is_relational(node);
    if (!relational) total += costs.own(id, plan[id]);
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (costs.has_edge(id, k) && !(relational && is_relational(program.node(node.inputs[k]))))
        total += costs.edge(id, k, plan[node.inputs[k]], plan[id]);
  }
  return total.seconds;
}

bool fits(const Program& program, const Plan& plan, const DecomposeOptions& options) {
  if (options.speeds.memory == 0) return true;
  const PlanCosts costs(program, options);
  for (ExprId id = 0; id < program.size(); ++id)
    if (!costs.fits(id, plan[id])) return false;
  return estimate(program, plan, options).resident <=
         static_cast<double>(options.speeds.memory) * static_cast<double>(sites_of(options));
}

struct Priced {
  RelationalPlan found;
  Plan merged;  // blocks that meet on a site as one
};

// Labels that the physical plan does not partition a join by are whole; a label that alone spreads the join over all
// sites has a piece for each.
Box merged_box(const Einsum& einsum, const Box& box, const LogicalOp& join, Distribution where, unsigned sites) {
  if (where.everywhere) return box;
  Box result(box.size(), 1);
  for (std::size_t i = 0; i < box.size(); ++i)
    for (std::size_t c = 0; c < join.columns.size(); ++c)
      if (join.columns[c].name == einsum.labels[i] && (where.columns >> c & 1)) result[i] = box[i];
  for (Index& pieces : result)
    if (pieces == product(result) && pieces > sites && pieces % sites == 0) pieces = sites;
  return result;
}

Priced price(const Program& program, const Plan& plan, const DecomposeOptions& options) {
  const Compiled compiled = compile(program, plan);
  const PhysicalPlan physical = optimise(compiled.logical, sites_of(options), options.speeds);
  Priced result{{plan, physical.seconds + other_seconds(program, plan, options)}, plan};
  const std::vector<char> needed = live(program);
  for (ExprId id = 0; id < program.size(); ++id) {
    const Einsum* einsum = program.node(id).as<Einsum>();
    if (einsum == nullptr || !needed[id]) continue;
    const TraId join = compiled.join_of[id];
    result.merged[id] = merged_box(*einsum, plan[id], compiled.logical.op(join),
                                   physical.ops[physical.result_of[join]].result, sites_of(options));
  }
  complete(program, result.merged);
  return result;
}

}  // namespace

Seconds relational_seconds(const Program& program, const Plan& plan, const DecomposeOptions& options) {
  return price(program, plan, options).found.seconds;
}

RelationalPlan relational_plan(const Program& program, const DecomposeOptions& options) {
  DecomposeOptions several = options;
  several.plans = kPlans;
  std::vector<Plan> candidates;
  for (Decomposition& found : decompose(program, several)) candidates.push_back(std::move(found.plan));
  for (Plan& plan : single_cut_plans(program, options.parts)) candidates.push_back(std::move(plan));
  candidates.push_back(uncut(program));
  RelationalPlan best = price(program, candidates[0], options).found;
  for (Plan& first : candidates) {
    Seconds before = 0;
    // Merging ends: every round has fewer blocks, and stops where it no longer pays.
    for (Plan plan = std::move(first); fits(program, plan, options);) {
      Priced priced = price(program, plan, options);
      if (before > 0 && priced.found.seconds >= before) break;
      before = priced.found.seconds;
      const bool same = priced.merged == priced.found.plan;
      plan = std::move(priced.merged);
      if (priced.found.seconds < best.seconds) best = std::move(priced.found);
      if (same) break;
    }
  }
  return best;
}

}  // namespace doppler::program
