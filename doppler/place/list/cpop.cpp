#include "doppler/place/list/cpop.h"

#include <algorithm>
#include <queue>

#include "doppler/graph/levels.h"
#include "doppler/place/list/list_schedule.h"

namespace doppler {
namespace {

// One path of length Levels::longest, from a source to a sink.
std::vector<OpId> critical_path_of(const Costs& costs, const Levels& level) {
  const Graph& graph = costs.graph();
  const auto longest = std::max_element(level.bottom.begin(), level.bottom.end());
  std::vector<OpId> path = {static_cast<OpId>(longest - level.bottom.begin())};
  while (true) {
    const OpId op = path.back();
    OpId next = op;
    Seconds best = -1;
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId consumer : graph.consumers(tensor)) {
        const Seconds below = costs.mean_transfer(tensor) + level.bottom[consumer];
        if (below > best) best = below, next = consumer;
      }
    }
    if (next == op) return path;
    path.push_back(next);
  }
}

// The device that runs most of the path (all of it, unless pins or capabilities forbid), and of those the
// fastest.
DeviceId device_for(const Problem& problem, const std::vector<OpId>& path) {
  DeviceId best = 0;
  std::size_t best_count = 0;
  Seconds best_time = Costs::kNever;
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    std::size_t count = 0;
    Seconds time = 0;
    for (const OpId op : path) {
      if (!problem.allows(op, device)) continue;
      ++count;
      time += problem.costs().op_time(op, device);
    }
    if (count < best_count || (count == best_count && time >= best_time)) continue;
    best = device;
    best_count = count;
    best_time = time;
  }
  return best;
}

}  // namespace

Proposal cpop(const Problem& problem, Objective& objective, const MethodOptions& options) {
  const Costs& costs = problem.costs();
  const Levels level = levels(problem.graph(), costs.mean_times(), costs.mean_transfers());
  const std::vector<OpId> path = critical_path_of(costs, level);
  const DeviceId path_device = device_for(problem, path);
  std::vector<char> on_path(problem.op_count(), 0);
  for (const OpId op : path) on_path[op] = 1;

  ListSchedule schedule(problem, options.budget);
  ReadyCounter producers(problem.graph());
  const auto less_urgent = [&](OpId a, OpId b) {
    const Seconds through_a = level.top[a] + level.bottom[a], through_b = level.top[b] + level.bottom[b];
    return through_a != through_b ? through_a < through_b : a > b;
  };
  std::priority_queue<OpId, std::vector<OpId>, decltype(less_urgent)> ready(less_urgent);
  producers.start([&](OpId op) { ready.push(op); });
  while (!ready.empty()) {
    const OpId op = ready.top();
    ready.pop();
    const auto devices = schedule.devices(op);
    const bool follows_path = on_path[op] && schedule.fits(op, path_device) &&
                              std::find(devices.begin(), devices.end(), path_device) != devices.end();
    if (follows_path)
      schedule.place(op, path_device, schedule.inserted_start(op, path_device), Cause::critical_path);
    else
      place_where_it_finishes_first(schedule, costs, op);
    producers.placed(op, [&](OpId consumer) { ready.push(consumer); });
  }
  return fit_in_memory(objective, {std::move(schedule).finish(ListSchedule::Order::started)}, options.budget);
}

}  // namespace doppler
