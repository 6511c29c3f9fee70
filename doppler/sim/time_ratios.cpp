#include "doppler/sim/time_ratios.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "doppler/base/statistics.h"
#include "doppler/graph/op_signature.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

constexpr double kForgetting = 0.1;       // weight of the newest run
constexpr double kOptimism = 0.01;        // part of the way that an unused device's ratio goes per run
constexpr double kUsualDeviations = 2;    // that a drift of a device must exceed
constexpr double kLinkDeviations = 3;     // and one of a link: there are many more links than devices
constexpr double kDoubtOfKinds = 2;       // runs that a kind must be seen in to be half believed
constexpr double kDoubtOfLinks = 0.5;     // and a link, which can differ much more
constexpr double kEqualKinds = 0.02;      // kinds that differ by less are one
constexpr double kNegligible = 0.01;      // part of a run that is added to both times of a transfer
constexpr std::size_t kLeastOfAKind = 2;  // ops of a kind that a run must have on a device to say something of it

struct RatioSample {
  double ratio, weight;
};

// Returns the logarithm of the ratio that half of the weight lies below.
double weighted_median(std::vector<RatioSample>& samples) {
  std::sort(samples.begin(), samples.end(),
            [](const RatioSample& a, const RatioSample& b) { return a.ratio < b.ratio; });
  double total = 0, passed = 0;
  for (const RatioSample& sample : samples) total += sample.weight;
  for (const RatioSample& sample : samples) {
    passed += sample.weight;
    if (2 * passed >= total) return std::log(sample.ratio);
  }
  return std::log(samples.back().ratio);
}

// How far a track is believed rather than what is usual elsewhere.
double trust(const RatioTrack& track, double doubt) {
  return static_cast<double>(track.seen) / (static_cast<double>(track.seen) + doubt);
}

// Returns the median of sorted numbers, with one of them left out if it is named.
double median_without(const std::vector<double>& sorted, std::optional<double> left_out) {
  const auto gap =
      left_out ? static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), *left_out) - sorted.begin())
               : sorted.size();
  const std::size_t count = sorted.size() - (left_out ? 1 : 0);
  const auto at = [&](std::size_t i) { return sorted[i < gap ? i : i + 1]; };
  return count % 2 == 1 ? at(count / 2) : (at(count / 2 - 1) + at(count / 2)) / 2;
}

}  // namespace

void RatioTrack::observe(double value) {
  const double weight = std::max(kForgetting, 1 / static_cast<double>(++seen));
  // What comes back into use is what it was when it was last seen, not what was hoped of it.
  average += weight * (value - average);
  guess = average;
  recent.push_back(value);
  if (recent.size() <= kRecent) return;
  const double old = recent.front();
  recent.erase(recent.begin());
  const double old_weight = std::max(kForgetting, 1 / static_cast<double>(++past));
  if (past > 1) deviation += old_weight * (std::abs(old - usual) - deviation);
  usual += old_weight * (old - usual);
}

bool RatioTrack::drifted(double least, double deviations) const {
  if (recent.size() < kRecent || past < kRecent) return false;
  const double distance = std::abs(median(recent) - usual);
  return distance > least && distance > deviations * deviation;
}

void RatioTrack::settle() {
  if (recent.empty()) return;
  // What is unused now keeps its guess.
  const bool in_use = guess == average;
  usual = average = median(recent);
  if (in_use) guess = average;
  seen = past = kRecent;
  // Most of them made the median, so the last ones are of the new time.
  if (recent.size() == kRecent) recent.erase(recent.begin(), recent.begin() + kRecent / 2);
}

TimeRatios::TimeRatios(const Problem& problem) : problem_(problem), devices_(problem.device_count()) {
  std::map<std::uint32_t, std::size_t> number;
  for (OpId op = 0; op < problem.op_count(); ++op)
    kind_of_op_.push_back(number.try_emplace(problem.graph().kind_id(op), number.size()).first->second);
  kinds_ = number.size();
  tracks_.resize(devices_ * (1 + devices_ + kinds_));
}

void TimeRatios::observe(const Timeline& timeline) {
  observe_ops(timeline);
  observe_links(timeline);
}

void TimeRatios::observe_ops(const Timeline& timeline) {
  std::vector<std::vector<RatioSample>> samples(devices_), of_kind(devices_ * kinds_);
  for (const Timeline::Execution& run : timeline.executions) {
    const Seconds modelled = problem_.costs().op_time(run.op, run.device), measured = run.end - run.start;
    if (!(modelled > 0 && measured > 0)) continue;
    samples[run.device].push_back({measured / modelled, modelled});
    of_kind[kind_of_op_[run.op] * devices_ + run.device].push_back({measured / modelled, modelled});
  }
  for (DeviceId device = 0; device < devices_; ++device) {
    RatioTrack& track = tracks_[device];
    if (samples[device].empty()) {
      if (track.seen > 0) track.guess += kOptimism * (guess_of_others(device) - track.guess);
      continue;
    }
    const double value = weighted_median(samples[device]);
    track.observe(value);
    for (std::size_t k = 0; k < kinds_; ++k)
      if (std::vector<RatioSample>& some = of_kind[k * devices_ + device]; some.size() >= kLeastOfAKind)
        kind(k, device).observe(weighted_median(some) - value);
  }
}

void TimeRatios::observe_links(const Timeline& timeline) {
  // Whoever moves a tensor gets up late now and then. That is many times what a small transfer takes, and says nothing
  // of large ones: a transfer counts for as much as it is long beside the run.
  const Seconds negligible = kNegligible * timeline.makespan;
  std::vector<std::vector<RatioSample>> samples(devices_ * devices_);
  for (const Timeline::Transfer& move : timeline.transfers) {
    const Seconds modelled = problem_.costs().transfer_time(move.tensor, move.src, move.dst);
    const Seconds measured = move.end - move.start;
    if (modelled > 0 && measured > 0)
      samples[move.src * devices_ + move.dst].push_back({(measured + negligible) / (modelled + negligible), modelled});
  }
  const SeenLinks before = seen_links();
  for (DeviceId src = 0; src < devices_; ++src)
    for (DeviceId dst = 0; dst < devices_; ++dst) {
      RatioTrack& track = link(src, dst);
      if (std::vector<RatioSample>& some = samples[src * devices_ + dst]; !some.empty())
        track.observe(weighted_median(some));
      else if (track.seen > 0)
        track.guess += kOptimism * (guess_of_class(src, dst, before) - track.guess);
    }
}

void TimeRatios::believe(DeviceId device, double ratio) {
  tracks_[device] = {};
  tracks_[device].observe(std::log(ratio));
}

double TimeRatios::guess_of_others(DeviceId device) const {
  std::vector<double> others;
  for (DeviceId other = 0; other < devices_; ++other)
    if (other != device && tracks_[other].seen > 0) others.push_back(tracks_[other].guess);
  return others.empty() ? tracks_[device].guess : median(others);
}

TimeRatios::SeenLinks TimeRatios::seen_links() const {
  SeenLinks seen;
  seen.of_class.resize(problem_.costs().link_classes());
  for (DeviceId a = 0; a < devices_; ++a)
    for (DeviceId b = 0; b < devices_; ++b) {
      if (a == b || link(a, b).seen == 0) continue;
      seen.all.push_back(link(a, b).guess);
      seen.of_class[problem_.costs().link_class(a, b)].push_back(link(a, b).guess);
    }
  std::sort(seen.all.begin(), seen.all.end());
  for (std::vector<double>& guesses : seen.of_class) std::sort(guesses.begin(), guesses.end());
  return seen;
}

// Returns the median of the other links that the machine says are equal to it, or of all if none of those was seen.
double TimeRatios::guess_of_class(DeviceId src, DeviceId dst, const SeenLinks& seen) const {
  const std::optional<double> own =
      link(src, dst).seen > 0 ? std::optional(link(src, dst).guess) : std::optional<double>();
  for (const std::vector<double>* guesses : {&seen.of_class[problem_.costs().link_class(src, dst)], &seen.all})
    if (guesses->size() > (own ? 1U : 0U)) return median_without(*guesses, own);
  return link(src, dst).guess;
}

double TimeRatios::ratio(DeviceId device) const {
  return std::exp(tracks_[device].seen > 0 ? tracks_[device].guess : guess_of_others(device));
}

double TimeRatios::ratio(DeviceId src, DeviceId dst) const { return ratio(src, dst, seen_links()); }

double TimeRatios::ratio(DeviceId src, DeviceId dst, const SeenLinks& seen) const {
  if (src == dst) return 1;
  const RatioTrack& track = link(src, dst);
  const double others = guess_of_class(src, dst, seen);
  return std::exp(others + trust(track, kDoubtOfLinks) * (track.guess - others));
}

double TimeRatios::kind_factor(std::size_t number, DeviceId device) const {
  std::vector<double> others;  // on devices of the same type
  for (DeviceId other = 0; other < devices_; ++other)
    if (other != device && problem_.machine().device(other).type == problem_.machine().device(device).type)
      if (const RatioTrack& track = kind(number, other); track.seen > 0)
        others.push_back(trust(track, kDoubtOfKinds) * track.average);
  const RatioTrack& track = kind(number, device);
  const double elsewhere = others.empty() ? 0 : median(others);
  return std::exp(elsewhere + trust(track, kDoubtOfKinds) * (track.average - elsewhere));
}

std::optional<TimeRatios::Drifted> TimeRatios::drifted() const {
  const auto found = [](DeviceId src, DeviceId dst, const RatioTrack& track) {
    return Drifted{src, dst, std::exp(median(track.recent)), std::exp(track.usual)};
  };
  for (DeviceId device = 0; device < devices_; ++device)
    if (tracks_[device].drifted(std::log(kDrift), kUsualDeviations)) return found(device, device, tracks_[device]);
  for (DeviceId src = 0; src < devices_; ++src)
    for (DeviceId dst = 0; dst < devices_; ++dst)
      if (link(src, dst).drifted(std::log(kLinkDrift), kLinkDeviations)) return found(src, dst, link(src, dst));
  return std::nullopt;
}

void TimeRatios::settle() {
  for (std::size_t i = 0; i < devices_ * (1 + devices_); ++i) tracks_[i].settle();
}

// Returns the corrected time of every op of the graph, or what the machine has where kinds do not differ.
std::vector<Measured> TimeRatios::measured(DeviceId device) const {
  const Graph& graph = problem_.graph();
  std::map<OpSignature, Seconds> times;
  std::vector<double> factors;
  for (std::size_t number = 0; number < kinds_; ++number) factors.push_back(kind_factor(number, device));
  bool differ = false;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    const Seconds modelled = problem_.costs().op_time(op, device) / problem_.machine().device(device).slowdown;
    if (!(modelled < Costs::kNever)) continue;
    const double factor = factors[kind_of_op_[op]];
    times[signature(graph, op)] = modelled * factor;
    differ |= std::abs(std::log(factor)) > kEqualKinds;
  }
  if (!differ) return problem_.machine().device(device).measured;
  std::vector<Measured> result;
  for (const auto& [op, seconds] : times)
    result.push_back({op.kind, op.dtype, op.flops, op.bytes_read, op.bytes_written, seconds});
  return result;
}

Machine TimeRatios::corrected() const {
  const Machine& machine = problem_.machine();
  const SeenLinks seen = seen_links();
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < devices_; ++src) {
    devices.push_back(machine.device(src));
    devices.back().measured = measured(src);
    devices.back().slowdown *= ratio(src);
    for (DeviceId dst = 0; dst < devices_; ++dst) {
      Link link = machine.link(src, dst);
      const double factor = ratio(src, dst, seen);
      link.latency *= factor;
      link.bytes_per_second /= factor;
      link.cost_factor *= factor;
      links.push_back(link);
    }
  }
  return Machine(machine.name(), std::move(devices), std::move(links), machine.link_model(), machine.jitter());
}

bool TimeRatios::restore(std::vector<RatioTrack> tracks) {
  if (tracks.size() != tracks_.size()) return false;
  tracks_ = std::move(tracks);
  return true;
}

TimeRatios fit_time_ratios(const Problem& problem, std::span<const MeasuredMakespan> measured) {
  constexpr double kSteps[] = {0.4, 0.2, 0.1, 0.05};  // of the logarithm
  constexpr double kPrice = 0.01;                     // of a ratio that is e times the common one
  constexpr std::size_t kMostPlacements = 32;         // the newest, which are those that matter
  measured = measured.last(std::min(measured.size(), kMostPlacements));
  const DeviceId devices = problem.device_count();
  std::vector<double> logs(devices, 0);
  const auto ratios_of = [&](double common) {
    TimeRatios ratios(problem);
    for (DeviceId device = 0; device < devices; ++device) ratios.believe(device, std::exp(common + logs[device]));
    return ratios;
  };
  // The common ratio is the mean error, as far as ops and not transfers make the makespan.
  const auto error = [&](double* common) {
    Simulator simulator(problem.on(ratios_of(0).corrected()));
    std::vector<double> errors;
    for (const MeasuredMakespan& run : measured)
      errors.push_back(std::log(run.makespan) - std::log(simulator.makespan(run.placement)));
    const double middle = median(errors);
    if (common != nullptr) *common = middle;
    double sum = 0;
    for (const double one : errors) sum += (one - middle) * (one - middle);
    for (const double one : logs) sum += kPrice * one * one;
    return sum;
  };
  double best = error(nullptr);
  for (const double step : kSteps)
    for (bool better = true; better;) {
      better = false;
      for (DeviceId device = 0; device < devices; ++device)
        for (const double change : {step, -step}) {
          logs[device] += change;
          const double now = error(nullptr);
          if (now < best) {
            best = now;
            better = true;
          } else {
            logs[device] -= change;
          }
        }
    }
  double common = 0;
  error(&common);
  return ratios_of(common);
}

}  // namespace doppler
