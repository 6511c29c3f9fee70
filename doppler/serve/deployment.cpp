#include "doppler/serve/deployment.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"
#include "doppler/place/cheap_methods.h"

namespace doppler {
namespace {

using Kind = DeploymentEvent::Kind;

// The challenger is tested after so many of its runs, and at least so many of the incumbent's beside them.
constexpr std::size_t kTests[] = {6, 10, 16};
constexpr std::size_t kLeastRivals = 6;
constexpr std::size_t kRecentRuns = 12;  // max_slowdown goes by the median of so many of the incumbent's runs
// There are so many runs between a search and the next; it doubles each time nothing comes of it.
constexpr std::uint64_t kFirstSearch = 6, kShortestWait = 20, kLongestWait = 640;
// These say what is a drift by makespan (Deployment).
constexpr std::size_t kNow = 8, kLeastBefore = 12, kMostBefore = 40;
constexpr double kTail = 0.05, kLeastShift = 0.05;
// So many runs lie between two questions after a device that does not answer.
constexpr std::uint64_t kFirstPatience = 5, kLongestPatience = 640;

bool same(const Placement& a, const Placement& b) {
  return a.device_of_op == b.device_of_op && a.priority == b.priority;
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::drift:
      return "drift";
    case Kind::no_better:
      return "no_better";
    case Kind::challenge:
      return "challenge";
    case Kind::dropped:
      return "dropped";
    case Kind::changed:
      return "changed";
    case Kind::gone:
      return "gone";
    case Kind::back:
      return "back";
  }
  return "";
}

Deployment::Deployment(const Problem& problem, Placement incumbent, const DeploymentOptions& options)
    : problem_(problem),
      present_(problem),
      options_(options),
      ratios_(problem),
      incumbent_(std::move(incumbent)),
      patience_(problem.device_count(), kFirstPatience),
      next_search_(kFirstSearch),
      wait_(kShortestWait) {
  DOPPLER_CHECK(options.explore_share >= 0 && options.explore_share <= 1 && options.max_slowdown >= 1,
                "explore share {}, max slowdown {}", options.explore_share, options.max_slowdown);
  verify(problem, incumbent_);
}

void Deployment::log(Kind kind, std::string text, std::vector<std::pair<std::string, double>> numbers) {
  events_.push_back({runs_, kind, std::move(text), std::move(numbers)});
}

const Placement& Deployment::next() {
  if (!asked_) {
    asked_ = true;
    if (!challenger_ && options_.explore_share > 0 && runs_ >= next_search_) search();
    exploring_ = may_explore();
  }
  return exploring_ ? challenger_->placement : incumbent_;
}

bool Deployment::may_explore() {
  credit_ = std::min(1.0, credit_ + options_.explore_share);
  if (!challenger_) return false;
  // In a burst the two take turns; otherwise whenever a whole run is saved up. `exploring_` is still of the last run.
  if (burst_ > 0) {
    if (!exploring_) --burst_;
    return !exploring_;
  }
  constexpr double kRounding = 1e-9;  // ten tenths are a run
  if (credit_ < 1 - kRounding) return false;
  credit_ = 0;
  return true;
}

MethodOptions Deployment::search_options() {
  MethodOptions method;
  const Budget budget = options_.search_evaluations > 0 ? Budget::for_evaluations(options_.search_evaluations)
                                                        : Budget::for_time(options_.search_time);
  method.budget = budget.until(options_.stop);
  method.seed = mix(options_.seed, searches_++);
  return method;
}

Suggestion Deployment::search_from(std::vector<Placement> known, const MethodOptions& method) {
  Advice advice;
  if (options_.policy != nullptr)
    advice = [this](const Problem& problem, Objective& objective, const MethodOptions& how) {
      return options_.policy->zero_shot(problem, objective, how);
    };
  return search_as_measured(ratios_, present_, std::move(known), advice, method);
}

void Deployment::search() {
  std::vector<Placement> starts = {incumbent_};
  if (retired_ && can_run(*retired_)) starts.push_back(*retired_);
  auto [found, after, before] = search_from(std::move(starts), search_options());
  next_search_ = runs_ + wait_;
  wait_ = std::min(2 * wait_, kLongestWait);
  const bool known =
      std::any_of(dismissed_.begin(), dismissed_.end(), [&](const Placement& other) { return same(other, found); });
  if (known || after > (1 - options_.least_gain) * before) {
    log(Kind::no_better,
        known ? "the best that the corrected simulator knows was tried before"
              : "the corrected simulator knows nothing that is better enough",
        {{"predicted_incumbent", before}, {"predicted", after}});
    return;
  }
  log(Kind::challenge, fmt::format("predicted to take {:.1f} % less than the incumbent", 100 * (1 - after / before)),
      {{"predicted_incumbent", before}, {"predicted", after}});
  challenger_ = Challenger{std::move(found), after / before, {}, {}, 0};
}

void Deployment::observe(Seconds makespan, const Timeline& timeline) {
  DOPPLER_CHECK(asked_, "a run that nobody asked for");
  asked_ = false;
  ++runs_;
  ratios_.observe(timeline);
  if (exploring_) {
    ++explored_;
    challenger_->own.push_back(makespan);
    if (makespan > options_.max_slowdown * recent_median())
      drop(fmt::format("a run took {:.2f} times as long as the incumbent", makespan / recent_median()));
  } else {
    incumbent_times_.push_back(makespan);
    if (incumbent_times_.size() > kNow + kMostBefore) incumbent_times_.erase(incumbent_times_.begin());
    if (challenger_) challenger_->rival.push_back(makespan);
  }
  if (challenger_) judge();
  watch_for_drift();
}

Seconds Deployment::recent_median() const {
  if (incumbent_times_.empty()) return Costs::kNever;
  const std::size_t count = std::min(incumbent_times_.size(), kRecentRuns);
  return median({incumbent_times_.end() - static_cast<std::ptrdiff_t>(count), incumbent_times_.end()});
}

void Deployment::judge() {
  Challenger& challenger = *challenger_;
  if (challenger.own.size() < kTests[challenger.tests] || challenger.rival.size() < kLeastRivals) return;
  ++challenger.tests;
  const double p = probability_not_smaller(challenger.own, challenger.rival);
  if (p < options_.error / static_cast<double>(std::size(kTests))) return promote(p);
  if (median(challenger.own) >= median(challenger.rival)) return drop("its median is no better than the incumbent's");
  if (challenger.tests == std::size(kTests)) drop("not shown to be better");
}

void Deployment::drop(const std::string& why) {
  std::vector<std::pair<std::string, double>> numbers = {{"runs", static_cast<double>(challenger_->own.size())},
                                                         {"median", median(challenger_->own)}};
  if (!challenger_->rival.empty()) {
    numbers.emplace_back("median_incumbent", median(challenger_->rival));
    numbers.emplace_back("p", probability_not_smaller(challenger_->own, challenger_->rival));
  }
  log(Kind::dropped, why, std::move(numbers));
  dismissed_.push_back(std::move(challenger_->placement));
  challenger_.reset();
  if (burst_ > 0) next_search_ = runs_;
}

void Deployment::promote(double p) {
  const Seconds before = median(challenger_->rival), after = median(challenger_->own);
  log(Kind::changed, fmt::format("the challenger takes over: {:.1f} % less", 100 * (1 - after / before)),
      {{"runs", static_cast<double>(challenger_->own.size())},
       {"median", after},
       {"median_incumbent", before},
       {"promised", challenger_->promised},
       {"p", p}});
  incumbent_ = std::move(challenger_->placement);
  incumbent_times_ = std::move(challenger_->own);
  challenger_.reset();
  dismissed_.clear();
  if (absent_.empty()) retired_.reset();
  ++changes_;
  wait_ = kShortestWait;
  next_search_ = runs_ + kShortestWait;
}

void Deployment::watch_for_drift() {
  if (const auto found = ratios_.drifted()) {
    const auto name = [this](DeviceId device) { return problem_.machine().device(device).name; };
    if (found->link())
      return start_over(
          Kind::drift,
          fmt::format("transfers from device '{}' to '{}' take {:.2f} times as long as modelled, {:.2f} before",
                      name(found->src), name(found->dst), found->recent, found->before),
          {{"src", found->src}, {"dst", found->dst}, {"ratio", found->recent}, {"before", found->before}});
    return start_over(Kind::drift,
                      fmt::format("ops on device '{}' take {:.2f} times as long as modelled, {:.2f} before",
                                  name(found->src), found->recent, found->before),
                      {{"device", found->src}, {"ratio", found->recent}, {"before", found->before}});
  }
  if (exploring_ || incumbent_times_.size() < kNow + kLeastBefore) return;
  const auto middle = incumbent_times_.end() - static_cast<std::ptrdiff_t>(kNow);
  const std::size_t count = std::min(kMostBefore, incumbent_times_.size() - kNow);
  const std::vector<Seconds> before(middle - static_cast<std::ptrdiff_t>(count), middle);
  const Seconds now = median({middle, incumbent_times_.end()}), usual = median(before);
  const bool outside = now < quantile(before, kTail) || now > quantile(before, 1 - kTail);
  if (outside && std::abs(now / usual - 1) > kLeastShift)
    start_over(Kind::drift, fmt::format("the incumbent takes {:.2f} times as long as before", now / usual),
               {{"median", now}, {"before", usual}});
}

void Deployment::start_over(Kind kind, const std::string& why, std::vector<std::pair<std::string, double>> numbers) {
  log(kind, why, std::move(numbers));
  challenger_.reset();
  dismissed_.clear();
  ratios_.settle();
  // The last few runs gave the drift away, so they are of the new time.
  constexpr std::size_t kKept = 3;
  if (incumbent_times_.size() > kKept) incumbent_times_.erase(incumbent_times_.begin(), incumbent_times_.end() - kKept);
  wait_ = kShortestWait;
  next_search_ = runs_;
  if (last_burst_ == 0 || runs_ - last_burst_ >= kRunsPerBurst) {
    burst_ = kBurst;
    last_burst_ = runs_;
  }
}

bool Deployment::can_run(const Placement& placement) const {
  for (OpId op = 0; op < present_.op_count(); ++op)
    if (!present_.allows(op, placement.device_of_op[op])) return false;
  return true;
}

void Deployment::leave_out_absent() {
  std::vector<DeviceId> devices;
  for (const Absence& absence : absent_) devices.push_back(absence.device);
  present_ = devices.empty() ? problem_ : problem_.without(devices);
}

void Deployment::lose(std::span<const DeviceId> devices) {
  DOPPLER_CHECK(asked_, "a run is lost that nobody asked for");
  asked_ = exploring_ = false;
  ++lost_;
  for (const DeviceId device : devices) {
    const auto same = [&](const Absence& absence) { return absence.device == device; };
    if (std::any_of(absent_.begin(), absent_.end(), same)) continue;
    absent_.push_back({device, runs_ + patience_[device]});
    log(Kind::gone, fmt::format("device '{}' does not answer", problem_.machine().device(device).name),
        {{"device", device}});
  }
  try {
    go_on_without_absent();
  } catch (const InfeasibleError&) {
    // The service ends here. What it knows must be of use when it begins again, perhaps with all devices.
    absent_.clear();
    present_ = problem_;
    throw;
  }
}

void Deployment::go_on_without_absent() {
  leave_out_absent();
  if (challenger_ && !can_run(challenger_->placement)) challenger_.reset();
  if (can_run(incumbent_)) return;
  challenger_.reset();
  dismissed_.clear();
  Placement found = replacement();
  if (!retired_) retired_ = incumbent_;
  incumbent_ = std::move(found);
  incumbent_times_.clear();
  ++changes_;
  wait_ = kShortestWait;
  next_search_ = runs_ + kFirstSearch;
}

// Returns what a search makes of the answers of the quick methods. These have all the time that they need: without an
// answer the service would end.
Placement Deployment::replacement() {
  const Problem corrected = present_.on(ratios_.corrected());
  ExactObjective objective(corrected);
  const MethodOptions method = search_options();
  MethodOptions patient = method;
  patient.budget = Budget::unlimited().until(options_.stop);
  std::vector<Placement> starts;
  const std::string why =
      ask(quick_methods(corrected), corrected, objective, patient,
          [&](std::string_view, Proposal proposal) { starts.push_back(std::move(proposal.placement)); });
  if (starts.empty())
    throw InfeasibleError(
        fmt::format("service: {} of {} devices do not answer, and no placement was found on the "
                    "others ({}); required devices that suffice",
                    absent_.size(), problem_.device_count(), why.empty() ? "in time" : why));
  return search_from(std::move(starts), method).placement;
}

std::vector<DeviceId> Deployment::worth_asking() const {
  std::vector<DeviceId> devices;
  for (const Absence& absence : absent_)
    if (runs_ >= absence.ask_at) devices.push_back(absence.device);
  return devices;
}

void Deployment::asked(DeviceId device, bool answers) {
  const auto found =
      std::find_if(absent_.begin(), absent_.end(), [&](const Absence& absence) { return absence.device == device; });
  DOPPLER_CHECK(found != absent_.end() && !asked_, "device {} is not missed, or a run is under way", device);
  found->ask_at = runs_ + patience_[device];
  if (!answers) return;
  patience_[device] = std::min(2 * patience_[device], kLongestPatience);  // for the next time
  absent_.erase(found);
  leave_out_absent();
  start_over(Kind::back, fmt::format("device '{}' answers again", problem_.machine().device(device).name),
             {{"device", device}});
}

}  // namespace doppler
