#include "doppler/calibrate/varied_placements.h"

#include <set>

#include "doppler/objective.h"

namespace doppler {
namespace {

void move_at_random(const Problem& problem, double share, Rng& rng, Placement& placement) {
  for (OpId op = 0; op < problem.op_count(); ++op) {
    if (problem.unit(op).front() != op || rng.uniform() >= share) continue;
    const auto devices = problem.devices(op);
    const DeviceId device = devices[rng.below(static_cast<std::uint32_t>(devices.size()))];
    for (const OpId member : problem.unit(op)) placement.device_of_op[member] = device;
  }
  placement.priority.clear();
}

}  // namespace

Placement random_placement(const Problem& problem, Rng& rng) {
  std::vector<double> weight(problem.device_count());
  for (double& w : weight) w = 0.05 + rng.uniform() * rng.uniform();
  Placement placement;
  placement.device_of_op.resize(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op) {
    if (problem.unit(op).front() != op) continue;
    const auto devices = problem.devices(op);
    double total = 0;
    for (const DeviceId device : devices) total += weight[device];
    double draw = rng.uniform() * total;
    DeviceId chosen = devices.back();
    for (const DeviceId device : devices) {
      draw -= weight[device];
      if (draw >= 0) continue;
      chosen = device;
      break;
    }
    for (const OpId member : problem.unit(op)) placement.device_of_op[member] = chosen;
  }
  return placement;
}

std::vector<VariedPlacement> varied_placements(const Problem& problem, const PlacementSources& sources,
                                               std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  ExactObjective objective(problem);
  std::set<Seconds> seen;
  std::vector<VariedPlacement> result;
  const auto offer = [&](std::string origin, Placement placement) {
    if (result.size() < count && seen.insert(objective.value(placement)).second)
      result.push_back({std::move(origin), std::move(placement)});
  };
  for (std::size_t i = 0; i < count / 3; ++i) offer("random", random_placement(problem, rng));
  for (const PlacementSources::Method& method : sources.methods) offer(method.name, method.place(seed));
  for (std::uint64_t i = 0; result.size() < count && i < 10 * count; ++i) {
    Placement placement = sources.policy(mix(seed, i));
    const double moved = i % 3 == 0 ? 0 : rng.uniform(0.02, 0.5);
    if (moved > 0) move_at_random(problem, moved, rng, placement);
    offer(moved > 0 ? "policy, shaken" : "policy", std::move(placement));
  }
  return result;
}

}  // namespace doppler
