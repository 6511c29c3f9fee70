#include "doppler/sim/device_ratios.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/statistics.h"

namespace doppler {
namespace {

constexpr double kForgetting = 0.1;     // weight of the newest run
constexpr double kOptimism = 0.01;      // part of the way that an unused device's ratio goes per run
constexpr double kUsualDeviations = 2;  // that a drift must exceed

struct Sample {
  double ratio, weight;
};

double weighted_median(std::vector<Sample>& samples) {
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.ratio < b.ratio; });
  double total = 0, passed = 0;
  for (const Sample& sample : samples) total += sample.weight;
  for (const Sample& sample : samples) {
    passed += sample.weight;
    if (2 * passed >= total) return sample.ratio;
  }
  return samples.back().ratio;
}

}  // namespace

DeviceRatios::DeviceRatios(const Problem& problem) : problem_(problem), states_(problem.device_count()) {}

void DeviceRatios::observe(const Timeline& timeline) {
  std::vector<std::vector<Sample>> samples(states_.size());
  for (const Timeline::Execution& run : timeline.executions) {
    const Seconds modelled = problem_.costs().op_time(run.op, run.device), measured = run.end - run.start;
    if (modelled > 0 && measured > 0) samples[run.device].push_back({measured / modelled, modelled});
  }
  for (DeviceId device = 0; device < states_.size(); ++device) {
    State& state = states_[device];
    if (samples[device].empty()) {
      if (state.seen > 0) state.guess += kOptimism * (guess_of_others(device) - state.guess);
      continue;
    }
    const double value = std::log(weighted_median(samples[device]));
    const double weight = std::max(kForgetting, 1 / static_cast<double>(++state.seen));
    // A device that comes back into use is what it was when it was last seen, not what was hoped of it.
    state.average += weight * (value - state.average);
    state.guess = state.average;
    state.recent.push_back(value);
    if (state.recent.size() <= kRecent) continue;
    const double old = state.recent.front();
    state.recent.erase(state.recent.begin());
    const double old_weight = std::max(kForgetting, 1 / static_cast<double>(++state.past));
    if (state.past > 1) state.deviation += old_weight * (std::abs(old - state.usual) - state.deviation);
    state.usual += old_weight * (old - state.usual);
  }
}

double DeviceRatios::guess_of_others(DeviceId device) const {
  std::vector<double> others;
  for (DeviceId other = 0; other < states_.size(); ++other)
    if (other != device && states_[other].seen > 0) others.push_back(states_[other].guess);
  return others.empty() ? states_[device].guess : median(others);
}

double DeviceRatios::ratio(DeviceId device) const {
  return std::exp(states_[device].seen > 0 ? states_[device].guess : guess_of_others(device));
}

double DeviceRatios::recent(DeviceId device) const {
  return states_[device].recent.empty() ? ratio(device) : std::exp(median(states_[device].recent));
}

double DeviceRatios::usual(DeviceId device) const { return std::exp(states_[device].usual); }

std::optional<DeviceId> DeviceRatios::drifted() const {
  for (DeviceId device = 0; device < states_.size(); ++device) {
    const State& state = states_[device];
    if (state.recent.size() < kRecent || state.past < kRecent) continue;
    const double distance = std::abs(median(state.recent) - state.usual);
    if (distance > std::log(kDrift) && distance > kUsualDeviations * state.deviation) return device;
  }
  return std::nullopt;
}

void DeviceRatios::settle() {
  for (State& state : states_) {
    if (state.recent.empty()) continue;
    // A device that is unused now keeps its guess.
    const bool in_use = state.guess == state.average;
    state.usual = state.average = median(state.recent);
    if (in_use) state.guess = state.average;
    state.seen = state.past = kRecent;
    // Most of them made the median, so the last ones are of the new time.
    if (state.recent.size() == kRecent) state.recent.erase(state.recent.begin(), state.recent.begin() + kRecent / 2);
  }
}

Machine DeviceRatios::corrected() const {
  const Machine& machine = problem_.machine();
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < machine.device_count(); ++src) {
    devices.push_back(machine.device(src));
    devices.back().slowdown *= ratio(src);
    for (DeviceId dst = 0; dst < machine.device_count(); ++dst) links.push_back(machine.link(src, dst));
  }
  return Machine(machine.name(), std::move(devices), std::move(links), machine.link_model(), machine.jitter())
      .with_emulation(machine.emulation());
}

}  // namespace doppler
