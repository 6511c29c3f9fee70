#include "doppler/why.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "doppler/analyse/chain.h"
#include "doppler/analyse/elsewhere.h"
#include "doppler/base/error.h"
#include "doppler/graph/levels.h"
#include "doppler/objective.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/place/simplify.h"
#include "doppler/time_account.h"

namespace doppler {
namespace {

constexpr std::size_t kTransfersShown = 5, kMostUnits = 50;
// From this share of the makespan on, something is what limits it.
constexpr double kLimits = 0.9, kMatters = 0.05;

class WhyAnalysis {
 public:
  WhyAnalysis(const Problem& problem, const Placement& placement, const WhyOptions& options)
      : problem_(problem),
        graph_(problem.graph()),
        machine_(problem.machine()),
        placement_(placement),
        options_(options),
        exact_(problem),
        modules_(graph_),
        run_(exact_.simulate(placement)) {
    result_.graph = options.graph.empty() ? graph_.title() : options.graph;
    result_.machine = machine_.name();
    result_.unitless = graph_.unitless();
    result_.makespan = run_.makespan;
    result_.feasible = run_.feasible();
  }

  WhyResult run() && {
    add_chain();
    add_units();
    add_transfers();
    add_idle();
    add_limit();
    if (options_.help) add_help();
    return std::move(result_);
  }

 private:
  const std::string& device_name(DeviceId device) const { return machine_.device(device).name; }

  void add_chain() {
    Seconds at = 0;
    for (const ChainStep& step : critical_chain(problem_, run_)) {
      WhyResult::Step shown;
      shown.name = graph_.name(step.op);
      shown.transfer = step.is_transfer;
      shown.device = step.is_transfer ? fmt::format("{} to {}", device_name(step.src), device_name(step.dst))
                                      : device_name(step.dst);
      shown.waits_for = to_string(step.waits);
      shown.start = step.start;
      shown.end = step.end;
      (step.is_transfer ? result_.chain_transfer : result_.chain_compute) += step.end - step.start;
      result_.chain_idle += std::max(0.0, step.start - at);
      at = step.end;
      result_.chain.push_back(std::move(shown));
    }
  }

  void add_units() {
    for (const std::string& name : options_.names)
      for (const NamedOps& named : ops_named(result_.graph, graph_, modules_, name)) {
        if (result_.units.size() == kMostUnits)
          throw InputError(fmt::format("why: found more than {} ops or modules; required a narrower pattern than '{}'",
                                       kMostUnits, name));
        WhyResult::Unit unit;
        unit.name = named.name;
        unit.ops = named.ops.size();
        for (const OpId op : named.ops) {
          const DeviceId device = placement_.device_of_op[op];
          unit.time += problem_.costs().op_time(op, device);
          const std::string& at = device_name(device);
          if (unit.device.empty()) unit.device = at;
          if (unit.device != at && unit.device.find(',') == std::string::npos) unit.device += ", …";
        }
        if (!placement_.cause_of_op.empty()) unit.cause = to_string(placement_.cause_of_op[named.ops.front()]);
        unit.elsewhere = elsewhere(exact_, placement_, named.ops);
        result_.units.push_back(std::move(unit));
      }
  }

  void add_transfers() {
    std::vector<Timeline::Transfer> longest = run_.transfers;
    std::stable_sort(longest.begin(), longest.end(), [](const Timeline::Transfer& a, const Timeline::Transfer& b) {
      return a.end - a.queued > b.end - b.queued;
    });
    for (const Timeline::Transfer& transfer : std::span(longest).first(std::min(longest.size(), kTransfersShown)))
      result_.transfers.push_back({graph_.name(graph_.producer(transfer.tensor)), device_name(transfer.src),
                                   device_name(transfer.dst), graph_.bytes(transfer.tensor),
                                   transfer.end - transfer.start, transfer.start - transfer.queued});
  }

  // Where the time of devices of one slot went, and the op whose result was waited for most.
  void add_idle() {
    for (DeviceId id = 0; id < machine_.device_count(); ++id)
      if (machine_.device(id).slots != 1) return;
    const std::vector<DeviceTime> account = account_time(problem_, run_);
    std::vector<std::map<std::string, Seconds>> waited(machine_.device_count());
    std::vector<Seconds> free_at(machine_.device_count(), 0);
    for (const Timeline::Execution& execution : run_.executions) {
      const Seconds gap = execution.start - free_at[execution.device];
      free_at[execution.device] = execution.end;
      if (gap > 0) waited[execution.device][waited_for(execution)] += gap;
    }
    for (DeviceId id = 0; id < machine_.device_count(); ++id) {
      WhyResult::Idle idle{device_name(id), account[id], {}, 0};
      for (const auto& [name, seconds] : waited[id])
        if (seconds > idle.blamed_seconds) idle.blamed = name, idle.blamed_seconds = seconds;
      result_.idle.push_back(std::move(idle));
    }
  }

  // The module, or else the op, whose result came last.
  std::string waited_for(const Timeline::Execution& execution) const {
    Seconds latest = -1;
    OpId last = execution.op;
    for (const TensorId tensor : graph_.inputs(execution.op)) {
      const OpId producer = graph_.producer(tensor);
      if (placement_.device_of_op[producer] == execution.device && latest >= 0) continue;
      const Seconds end = end_of(producer);
      if (end > latest) latest = end, last = producer;
    }
    const Modules::Id module = modules_.of(last);
    return module == Modules::kNone ? graph_.name(last) : modules_[module].name;
  }
  Seconds end_of(OpId op) const {
    if (end_of_.empty()) {
      end_of_.resize(problem_.op_count());
      for (const Timeline::Execution& execution : run_.executions) end_of_[execution.op] = execution.end;
    }
    return end_of_[op];
  }

  void add_limit() {
    const Seconds chain = levels(graph_, problem_.costs().fastest_times(), {}).longest;
    const double parallelism = run_.makespan > 0 ? chain / run_.makespan : 1;
    double busiest = 0, mean = 0;
    DeviceId busy_device = 0;
    for (DeviceId id = 0; id < machine_.device_count(); ++id) {
      const double share = run_.makespan > 0 ? run_.busy[id] / (run_.makespan * machine_.device(id).slots) : 0;
      mean += share / machine_.device_count();
      if (share > busiest) busiest = share, busy_device = id;
    }
    const Seconds free_links = ExactObjective(problem_.on(machine_.with_links(kFreeLinks))).value(placement_);
    const double links = run_.makespan > 0 ? 1 - free_links / run_.makespan : 0;
    const auto say = [&](const char* limit, std::string because) {
      result_.limit = limit;
      result_.because = std::move(because);
    };
    if (parallelism >= kLimits)
      say("parallelism", fmt::format("a chain of ops takes {:.0f} % of the time on the fastest device for each, and no "
                                     "placement shortens it",
                                     100 * parallelism));
    else if (mean >= kLimits)
      say("devices", fmt::format("all devices are busy {:.0f} % of the time on average", 100 * mean));
    else if (busiest >= kLimits && busiest >= links)
      say("one device",
          fmt::format("'{}' is busy {:.0f} % of the time, the others less", device_name(busy_device), 100 * busiest));
    else if (links >= kMatters)
      say("links", fmt::format("with links that take no time it would be {:.0f} % shorter", 100 * links));
    else
      say("dependencies",
          fmt::format("devices wait for one another: they are busy {:.0f} % of the time on average, and "
                      "the longest chain of ops takes {:.0f} %",
                      100 * mean, 100 * parallelism));
  }

  // What changes of the machine or the rules would do, for the placement as it is and for what quick methods find then.
  // What they find without any change comes first, so that nothing else shines by it.
  void add_help() {
    Seconds without = result_.makespan;
    const auto consider = [&](std::string change, const Problem& other) {
      Seconds best = Costs::kNever;
      ExactObjective exact(other);
      if (exact.fits_in_memory(placement_)) best = exact.value(placement_);
      MethodOptions options;
      options.budget = Budget::unlimited();
      ask(quick_methods(other), other, exact, options,
          [&](std::string_view, const Proposal& proposal) { best = std::min(best, exact.value(proposal.placement)); });
      if (best < without * (1 - kWorthSaying)) result_.help.push_back({std::move(change), best});
      return best;
    };
    without = std::min(without, consider("another placement, such as 'doppler place' finds", problem_));
    if (machine_.device_count() > 1) consider("links twice as fast", problem_.on(machine_.with_links(2)));
    DeviceId busiest = 0;
    for (DeviceId id = 0; id < machine_.device_count(); ++id)
      if (run_.busy[id] > run_.busy[busiest]) busiest = id;
    if (machine_.device_count() < kMostDevices)
      consider(fmt::format("one more device like '{}'", device_name(busiest)),
               problem_.on(machine_.with_more(busiest, 1)));
    if (problem_.memory_limited()) consider("twice the memory", problem_.on(machine_.with_memory(2)));
    if (problem_.rules().discipline == Discipline::fifo && !problem_.rules().bulk_synchronous &&
        problem_.rules().ties == Ties::by_id) {
      Rules rules = problem_.rules();
      rules.discipline = Discipline::priority;
      consider("priorities in place of first come, first served (--discipline priority)", problem_.with(rules));
    }
    std::stable_sort(result_.help.begin(), result_.help.end(),
                     [](const WhyResult::Help& a, const WhyResult::Help& b) { return a.makespan < b.makespan; });
  }

  static constexpr double kFreeLinks = 1e12;     // so fast that transfers take no time
  static constexpr double kWorthSaying = 0.005;  // Less is not worth a line.

  const Problem& problem_;
  const Graph& graph_;
  const Machine& machine_;
  const Placement& placement_;
  const WhyOptions& options_;
  ExactObjective exact_;
  Modules modules_;
  Timeline run_;
  mutable std::vector<Seconds> end_of_;  // by op; filled when it is first asked for
  WhyResult result_;
};

}  // namespace

WhyResult why(const Problem& problem, const Placement& placement, const WhyOptions& options) {
  verify(problem, placement);
  return WhyAnalysis(problem, placement, options).run();
}

std::vector<Cause> simulated_causes(const Problem& problem, const Placement& placement) {
  verify(problem, placement);
  ExactObjective exact(problem);
  const Seconds makespan = exact.value(placement);
  const Bytes bytes = moved_bytes(problem.graph(), placement.device_of_op);
  std::vector<Cause> causes(problem.op_count(), Cause::chosen);
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const OpId first = problem.unit(op).front();
    if (problem.pinned(op)) {
      causes[op] = Cause::pinned;
    } else if (problem.devices(op).size() == 1) {
      causes[op] = Cause::only_device;
    } else if (first != op) {
      causes[op] = Cause::colocated;
    } else {
      bool as_fast = false, as_simple = false, fits = false;
      for (const DeviceId device : problem.devices(op)) {
        if (device == placement.device_of_op[op]) continue;
        const std::optional<Placement> other = moved(problem, placement, {op}, device);
        if (!exact.fits_in_memory(*other)) continue;
        fits = true;
        if (exact.value(*other) > makespan) continue;
        as_fast = true;
        as_simple = as_simple || moved_bytes(problem.graph(), other->device_of_op) <= bytes;
      }
      causes[op] = !fits        ? Cause::memory
                   : !as_fast   ? Cause::makespan
                   : !as_simple ? Cause::less_moved
                                : Cause::indifferent;
    }
  }
  return causes;
}

}  // namespace doppler
