#include "doppler/calibrate/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "doppler/base/error.h"
#include "doppler/base/statistics.h"
#include "doppler/objective.h"

namespace doppler {
namespace {

// A busy device takes the sum of its ops' times, and the sum of medians of skewed times is too small: so means
// count, but without the few times when something else had the core.
constexpr double kOutliers = 0.02;

// When each device was last busy before an op began, and the op that began.
struct Run {
  const Timeline::Execution* execution = nullptr;
  Seconds free_since = 0;
};

std::vector<Run> runs_by_op(const Problem& problem, const Timeline& timeline) {
  std::vector<Run> runs(problem.op_count());
  std::vector<Seconds> free_since(problem.device_count(), 0);
  for (const Timeline::Execution& execution : timeline.executions) {
    runs[execution.op] = {&execution, free_since[execution.device]};
    free_since[execution.device] = execution.end;
  }
  return runs;
}

bool has_own_times(const Graph& graph) {
  if (!graph.cost_types().empty()) return true;
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    if (graph.explicit_transfer(tensor)) return true;
  return false;
}

}  // namespace

void Calibration::check(const Graph& graph) {
  if (has_own_times(graph))
    throw InputError(
        fmt::format("graph '{}': has explicit times, which no measurement changes; required a graph whose ops "
                    "have flops and bytes",
                    graph.title()));
}

void Calibration::add(const Problem& problem, const Placement& placement, const Timeline& timeline) {
  const Graph& graph = problem.graph();
  check(graph);
  links_ = problem.rules().links;
  const Seconds known_excess = problem.machine().emulation().value_or(Emulation()).overhead;
  for (const Timeline::Execution& execution : timeline.executions) {
    const OpId op = execution.op;
    const Seconds time = execution.end - execution.start;
    const double slowdown = problem.machine().device(execution.device).slowdown;
    if (emulated_) excess_.push_back(time - problem.costs().op_time(op, execution.device) + slowdown * known_excess);
    ops_[signature(graph, op)].push_back(time);
  }
  others_ += std::accumulate(timeline.others.begin(), timeline.others.end(), 0.0);
  all_ += timeline.makespan * static_cast<double>(timeline.others.size());
  interference_.add(graph, timeline);
  jitter_.add(graph, timeline);
  add_transfers(problem, timeline);
  const auto known = std::find_if(runs_.begin(), runs_.end(), [&](const Runs& runs) {
    return runs.problem.shared_graph() == problem.shared_graph() && runs.placement == placement;
  });
  Runs& runs = known != runs_.end() ? *known : runs_.emplace_back(Runs{problem, placement, {}});
  runs.makespans.push_back(timeline.makespan);
}

// A transfer has arrived for good when its device can use it: if the device was idle and waited for this one alone (no
// other input came later), the time until it woke up counts. A busy device looks between two ops, which costs nothing.
// On cpu devices it has begun when its producer had ended and the courier was free, not when the courier woke up. A
// hand-over takes what it takes a device that waits to see it, and nothing otherwise.
void Calibration::add_transfers(const Problem& problem, const Timeline& timeline) {
  const Seconds known_excess = problem.machine().emulation().value_or(Emulation()).latency;
  const auto modelled = [&](const Timeline::Transfer& transfer) {
    if (!emulated_) return 0.0;
    return problem.costs().transfer_time(transfer.tensor, transfer.src, transfer.dst) - known_excess;
  };
  if (problem.rules().links == Links::receiver) {  // a copy is the device's own work and takes what it takes
    for (const Timeline::Transfer& transfer : timeline.transfers)
      transfers_.push_back(
          {problem.graph().bytes(transfer.tensor), transfer.end - transfer.start - modelled(transfer)});
    return;
  }
  const std::vector<Run> runs = runs_by_op(problem, timeline);
  std::vector<Seconds> last_arrival(problem.op_count(), 0);  // by op, over its inputs from other devices
  for (const Timeline::Transfer& transfer : timeline.transfers)
    for (const OpId consumer : problem.graph().consumers(transfer.tensor))
      if (runs[consumer].execution->device == transfer.dst)
        last_arrival[consumer] = std::max(last_arrival[consumer], transfer.end);
  std::vector<Seconds> courier_free(problem.device_count(), 0);
  const bool hands_over = problem.rules().links == Links::shared && !emulated_;
  for (const Timeline::Transfer& transfer : timeline.transfers) {
    const Seconds begin = emulated_ ? transfer.start : std::max(transfer.queued, courier_free[transfer.dst]);
    courier_free[transfer.dst] = transfer.end;
    Seconds arrived = transfer.end;
    bool waited = false;
    for (const OpId consumer : problem.graph().consumers(transfer.tensor)) {
      const Run& run = runs[consumer];
      if (run.execution->device == transfer.dst && run.execution->ready > run.free_since &&
          last_arrival[consumer] == transfer.end) {
        arrived = std::max(arrived, run.execution->ready);
        waited = true;
      }
    }
    if (!hands_over)
      transfers_.push_back({problem.graph().bytes(transfer.tensor), arrived - begin - modelled(transfer)});
    else if (waited)
      transfers_.push_back({0, arrived - transfer.queued});
  }
}

Machine Calibration::machine(const std::string& name) const {
  if (ops_.empty()) throw InputError("calibration: found no ops; required runs of a graph");
  if (base_.device_count() > 1 && transfers_.empty() && links_ != Links::shared)
    throw InputError("calibration: found no transfers; required graphs whose ops depend on one another");
  const Excess excess = found_excess();
  return stretched(name, excess, fitted_stretch(excess));
}

double Calibration::stretch() const { return fitted_stretch(found_excess()); }

Calibration::Excess Calibration::found_excess() const {
  return {emulated_ ? std::max(0.0, median(excess_)) : 0, transfers_.empty() ? LinkFit() : fitted_link(),
          jitter_.fitted()};
}

// Returns the median over the placements.
double Calibration::predicted_over_measured(const Machine& machine) const {
  std::vector<double> ratios;
  for (std::size_t begin = 0, end = 0; begin < runs_.size(); begin = end) {
    const Problem& of = runs_[begin].problem;
    ExpectedObjective expected(of.on(machine));
    for (; end < runs_.size() && runs_[end].problem.shared_graph() == of.shared_graph(); ++end)
      ratios.push_back(expected.value(runs_[end].placement) / median(runs_[end].makespans));
  }
  return median(ratios);
}

double Calibration::fitted_stretch(const Excess& excess) const {
  const auto ratio = [&](double stretch) { return predicted_over_measured(stretched("", excess, stretch)); };
  if (!emulated_) return 1 / ratio(1);  // all times grow with it
  // Waking up cannot explain more than a few times what it was measured to take.
  constexpr double kMost = 4;
  double low = 0, high = kMost;
  for (int halving = 0; halving < 40; ++halving) {
    const double middle = (low + high) / 2;
    (ratio(middle) < 1 ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Multiplies all times; of emulated devices, what is added to the model.
Machine Calibration::stretched(const std::string& name, const Excess& excess, double stretch) const {
  // Runs mix the devices and the links, so there is one answer for all of them.
  const Seconds op_excess = stretch * excess.op;
  Device measured;
  if (!emulated_) describe_ops(measured, stretch);
  const LinkFit fit{stretch * excess.link.latency, stretch * excess.link.per_byte};
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < base_.device_count(); ++src) {
    Device& device = devices.emplace_back(base_.device(src));
    if (emulated_) {
      device.overhead += op_excess;
      for (Measured& op : device.measured) op.seconds += op_excess;  // overhead is not added to these
    } else {
      device.measured = measured.measured;
      device.rates = measured.rates;
      device.memory_bytes_per_second = measured.memory_bytes_per_second;
      device.overhead = 0;  // it is part of what was measured
      device.slowdown = 1;
    }
    for (DeviceId dst = 0; dst < base_.device_count(); ++dst) {
      Link& link = links.emplace_back(base_.link(src, dst));
      if (src == dst) continue;
      link.latency = (emulated_ ? link.latency : 0) + fit.latency;
      if (!emulated_) link.bytes_per_second = fit.per_byte > 0 ? 1 / fit.per_byte : 0;
    }
  }
  const Machine machine(name, std::move(devices), std::move(links), links_, excess.jitter);
  if (!emulated_) return machine;
  return machine.with_emulation(Emulation{op_excess, fit.latency, base_.jitter()});
}

void Calibration::describe_ops(Device& device, double stretch) const {
  for (const auto& [shape, times] : ops_) {
    const auto& [kind, dtype, flops, read, written] = shape;
    device.measured.push_back({kind, dtype, flops, read, written, stretch * trimmed_mean(times, kOutliers)});
  }
  double slowest = 0;
  for (const CalibrationResult::Kind& kind : kinds()) {
    device.memory_bytes_per_second = std::max(device.memory_bytes_per_second, kind.bytes_per_second / stretch);
    if (kind.flops_per_second <= 0) continue;
    const double rate = kind.flops_per_second / stretch;
    device.rates.push_back({kind.kind, kind.dtype, rate});
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  // Kinds that no run had are as slow as the slowest that one had.
  device.rates.push_back({"*", "*", slowest > 0 ? slowest : 1e9});
}

// Fits what transfers take; of emulated devices, what one takes in addition, whatever its size.
LinkFit Calibration::fitted_link() const {
  std::map<Bytes, std::vector<Seconds>> by_size;
  for (const Move& move : transfers_) by_size[emulated_ ? 0 : move.bytes].push_back(move.time);
  std::vector<std::pair<Bytes, Seconds>> samples;
  for (const auto& [bytes, times] : by_size) samples.emplace_back(bytes, trimmed_mean(times, kOutliers));
  return fit_link(samples);
}

std::vector<CalibrationResult::Kind> Calibration::kinds() const {
  using Kind = CalibrationResult::Kind;
  std::map<std::pair<std::string, std::string>, Kind> result;
  std::map<std::pair<std::string, std::string>, std::vector<double>> rates, bandwidths;
  for (const auto& [shape, times] : ops_) {
    const auto& [name, dtype, flops, read, written] = shape;
    Kind& kind = result[{name, dtype}];
    kind.kind = name;
    kind.dtype = dtype;
    ++kind.shapes;
    kind.samples += times.size();
    const Seconds typical = median(times);
    if (typical <= 0) continue;
    kind.spread += (quantile(times, 0.9) - quantile(times, 0.1)) / typical;
    rates[{name, dtype}].push_back(flops / typical);
    bandwidths[{name, dtype}].push_back(static_cast<double>(read + written) / typical);
  }
  std::vector<Kind> list;
  const Jitter jitter = jitter_.fitted();
  for (auto& [key, kind] : result) {
    kind.jitter = jitter.of_kind(kind.kind);
    kind.spread /= static_cast<double>(kind.shapes);
    if (!rates[key].empty()) kind.flops_per_second = median(rates[key]);
    if (!bandwidths[key].empty()) kind.bytes_per_second = median(bandwidths[key]);
    kind.interference = interference_.of(kind.kind, kind.dtype);
    list.push_back(std::move(kind));
  }
  return list;
}

LinkFit fit_link(const std::vector<std::pair<Bytes, Seconds>>& samples) {
  // Minimise Σ ((l + p·b - t) / t)²: normal equations with weights 1/t².
  double w = 0, wb = 0, wbb = 0, wt = 0, wbt = 0;
  for (const auto& [bytes, time] : samples) {
    if (time <= 0) continue;
    const double b = static_cast<double>(bytes), weight = 1 / (time * time);
    w += weight;
    wb += weight * b;
    wbb += weight * b * b;
    wt += weight * time;
    wbt += weight * b * time;
  }
  const double determinant = w * wbb - wb * wb;
  if (w == 0) return {};
  LinkFit fit{wt / w, 0};  // of one size only, nobody can tell what a byte takes
  if (determinant > 1e-9 * w * wbb) fit = {(wbb * wt - wb * wbt) / determinant, (w * wbt - wb * wt) / determinant};
  if (fit.per_byte < 0) return {wt / w, 0};
  if (fit.latency < 0) return {0, wbt / wbb};
  return fit;
}

}  // namespace doppler
