#include <algorithm>
#include <map>

#include "doppler/analyse/chain.h"
#include "doppler/analyse/elsewhere.h"
#include "doppler/objective.h"
#include "doppler/sim/memory.h"
#include "doppler/time_account.h"
#include "doppler/why.h"

namespace doppler {
namespace {

constexpr double kTicks = 1e8;

// Numbers for names, in the order of their first use.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) {}
  std::uint32_t number(std::string_view name) {
    const auto [entry, added] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
    if (added) names_.emplace_back(name);
    return entry->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::uint32_t> numbers_;
};

class ScheduleMaker {
 public:
  ScheduleMaker(const Problem& problem, const Placement& placement, const Timeline& timeline, bool simulated)
      : problem_(problem), graph_(problem.graph()), placement_(placement), timeline_(timeline), simulated_(simulated) {
    schedule_.measured = !simulated;
    schedule_.unitless = graph_.unitless();
    schedule_.makespan = timeline.makespan;
    schedule_.tick = timeline.makespan > 0 ? timeline.makespan / kTicks : 1;
  }

  Schedule make() && {
    add_devices();
    add_ops();
    add_transfers();
    add_memory();
    Names waits(schedule_.waits);
    add_gaps(waits);
    add_chain(waits);
    if (simulated_) add_elsewhere();
    return std::move(schedule_);
  }

 private:
  // What a real clock puts a little outside of the run is put at its ends.
  std::uint32_t ticks(Seconds time) const {
    return static_cast<std::uint32_t>(std::clamp(time / schedule_.tick, 0.0, 4 * kTicks) + 0.5);
  }

  void add_devices() {
    Names types(schedule_.types);
    for (DeviceId id = 0; id < problem_.device_count(); ++id) {
      const Device& device = problem_.machine().device(id);
      schedule_.devices.push_back({.name = device.name, .memory = device.memory, .slots = device.slots});
      schedule_.type_of_device.push_back(types.number(device.type));
    }
    if (schedule_.types.size() < 2) return;
    for (std::uint32_t type = 0; type < schedule_.types.size(); ++type) {
      const auto first = std::find(schedule_.type_of_device.begin(), schedule_.type_of_device.end(), type);
      const auto device = static_cast<DeviceId>(first - schedule_.type_of_device.begin());
      Schedule::Ticks& times = schedule_.time_on.emplace_back();
      for (OpId op = 0; op < graph_.op_count(); ++op)
        times.push_back(problem_.costs().can_run(op, device) ? ticks(problem_.costs().op_time(op, device))
                                                             : Schedule::kCannotRun);
    }
  }

  void add_ops() {
    Schedule::Ops& ops = schedule_.ops;
    Names kinds(schedule_.kinds), causes(schedule_.causes);
    const std::size_t count = graph_.op_count();
    for (Schedule::Column* column : {&ops.device, &ops.slot, &ops.start, &ops.takes, &ops.waited})
      column->assign(count, 0);
    ops.input_begin.push_back(0);
    for (OpId op = 0; op < count; ++op) {
      ops.name.push_back(graph_.name(op));
      ops.kind.push_back(kinds.number(graph_.kind(op)));
      if (!placement_.cause_of_op.empty()) ops.cause.push_back(causes.number(to_string(placement_.cause_of_op[op])));
      for (const TensorId tensor : graph_.inputs(op)) ops.input.push_back(graph_.producer(tensor));
      ops.input_begin.push_back(static_cast<std::uint32_t>(ops.input.size()));
    }
    for (const Timeline::Execution& run : timeline_.executions) {
      ops.device[run.op] = run.device;
      ops.slot[run.op] = run.slot;
      ops.start[run.op] = ticks(run.start);
      ops.takes[run.op] = ticks(run.end) - ticks(run.start);
      ops.waited[run.op] = ticks(run.start) - std::min(ticks(run.ready), ticks(run.start));
    }
  }

  void add_transfers() {
    Schedule::Transfers& transfers = schedule_.transfers;
    std::uint32_t last = 0;
    for (const Timeline::Transfer& move : timeline_.transfers) {
      const std::uint32_t start = std::max(last, ticks(move.start));
      number_of_transfer_[{move.tensor, move.dst}] = static_cast<std::uint32_t>(transfers.later.size());
      transfers.producer.push_back(graph_.producer(move.tensor));
      transfers.src.push_back(move.src);
      transfers.dst.push_back(move.dst);
      transfers.later.push_back(start - last);
      transfers.takes.push_back(std::max(start, ticks(move.end)) - start);
      transfers.waited.push_back(start - std::min(start, ticks(move.queued)));
      last = start;
      transfers.bytes.push_back(graph_.bytes(move.tensor));
    }
  }

  void add_memory() {
    constexpr std::size_t kManySteps = 50'000;
    constexpr std::uint32_t kCoarse = 20'000;  // ticks: a screen has fewer pixels than 10^8 / 20'000
    const std::vector<MemoryStep> steps = memory_over_time(problem_, timeline_);
    const std::uint32_t resolution = steps.size() > kManySteps ? kCoarse : 1;
    for (const MemoryStep& step : steps) {
      Schedule::DeviceLane& lane = schedule_.devices[step.device];
      const std::uint32_t time = ticks(step.time) / resolution * resolution;
      // Of what happens within one of them the most is kept: a peak must not get lost.
      if (!lane.memory_times.empty() && lane.memory_times.back() == time) {
        lane.memory_bytes.back() = std::max(lane.memory_bytes.back(), step.used);
        continue;
      }
      lane.memory_times.push_back(time);
      lane.memory_bytes.push_back(step.used);
    }
  }

  void add_gaps(Names& waits) {
    Schedule::Gaps& gaps = schedule_.gaps;
    for (const IdleGap& gap : idle_gaps(problem_, timeline_)) {
      gaps.device.push_back(gap.device);
      gaps.slot.push_back(gap.slot);
      gaps.start.push_back(ticks(gap.start));
      gaps.end.push_back(ticks(gap.end));
      gaps.waits.push_back(waits.number(to_string(gap.waits)));
    }
  }

  void add_chain(Names& waits) {
    for (const ChainStep& step : critical_chain(problem_, timeline_)) {
      schedule_.chain.transfer.push_back(step.is_transfer ? 1 : 0);
      schedule_.chain.id.push_back(step.is_transfer ? number_of_transfer_.at({step.tensor, step.dst}) : step.op);
      schedule_.chain.waits.push_back(waits.number(to_string(step.waits)));
    }
  }

  // Every op on every device costs a simulation of the whole: a few tenths of a second at most.
  void add_elsewhere() {
    constexpr double kMostOpRuns = 3e7;
    const double runs_per_op = static_cast<double>(graph_.op_count()) * problem_.device_count();
    Schedule::Column ops;
    if (runs_per_op * static_cast<double>(graph_.op_count()) <= kMostOpRuns) {
      for (OpId op = 0; op < graph_.op_count(); ++op) ops.push_back(op);
    } else {
      for (std::size_t i = 0; i < schedule_.chain.id.size(); ++i)
        if (schedule_.chain.transfer[i] == 0) ops.push_back(schedule_.chain.id[i]);
    }
    if (problem_.device_count() < 2 || runs_per_op * static_cast<double>(ops.size()) > kMostOpRuns) return;
    ExactObjective exact(problem_);
    Schedule::Elsewhere& there = schedule_.elsewhere;
    there.makespan.assign(problem_.device_count(), Schedule::Ticks(ops.size(), Schedule::kCannotRun));
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (DeviceId device = 0; device < problem_.device_count(); ++device)
        if (const std::optional<Placement> other = moved(problem_, placement_, {ops[i]}, device);
            other && exact.fits_in_memory(*other))
          there.makespan[device][i] = ticks(exact.value(*other));
    there.op = std::move(ops);
  }

  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  const Timeline& timeline_;
  bool simulated_;
  std::map<std::pair<TensorId, DeviceId>, std::uint32_t> number_of_transfer_;
  Schedule schedule_;
};

}  // namespace

Schedule schedule_of(const Problem& problem, const Placement& placement, const Timeline& timeline, bool measured) {
  return ScheduleMaker(problem, placement, timeline, !measured).make();
}

}  // namespace doppler
