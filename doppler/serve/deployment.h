#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "doppler/place/learned.h"
#include "doppler/sim/device_ratios.h"

namespace doppler {

struct DeploymentOptions {
  double explore_share = 0.1;  // at most so many of the runs explore, except after a drift (Deployment)
  double max_slowdown = 1.2;   // one run so much slower than the incumbent ends a challenge
  double least_gain = 0.02;    // the corrected simulator must promise so much of a challenger
  double error = 0.01;         // the chance that a challenger that is no better takes over
  // A search for a challenger takes so long or, if there are any, so many evaluations (then it is the same every time).
  Seconds search_time = 0.2;
  std::uint64_t search_evaluations = 0;
  std::shared_ptr<const LearnedPolicy> policy = nullptr;  // null: search alone
  std::uint64_t seed = 0;
  std::stop_token stop = {};  // cuts a search short
};

// A decision of a deployment, for the log.
struct DeploymentEvent {
  enum class Kind : std::uint8_t {
    drift,      // the system is not what it was
    no_better,  // a search found nothing to try
    challenge,  // a search found a challenger
    dropped,    // the challenger is out
    changed,    // the challenger is the incumbent now
  };
  std::uint64_t run = 0;  // how many runs there were before it
  Kind kind = Kind::drift;
  std::string text;
  std::vector<std::pair<std::string, double>> numbers;
};
std::string_view to_string(DeploymentEvent::Kind kind);

// Decides which placement each run of a served graph uses, and learns from what was measured.
//
// Most runs use the incumbent. A challenger comes from the simulator corrected by what the devices were measured to
// take (DeviceRatios): the best there of the policy's answer, HEFT's and short annealings, if promised to be better by
// `least_gain` when times vary a little. It is run in turn with the incumbent and takes over only by a one-sided
// Mann-Whitney test: its runs against the incumbent's runs since the challenge began. The test is made at most three
// times, after 6, 10 and 16 runs of the challenger and at least 6 of the incumbent, each with a third of `error`
// (Bonferroni), so that `error` bounds the chance per challenger. Challengers are tests too: between two drifts or
// changes the wait between them doubles, so there are few. A challenger goes if one run takes more than `max_slowdown`
// times the incumbent's recent median, if its median is no better when tested, or after the third test.
//
// It is a drift if a device's ratio has changed (DeviceRatios::drifted), or the median of the incumbent's last 8 runs
// lies outside the 5 % to 95 % range of the (12 to 40) runs before, by more than 5 % of their median. Runs before a
// drift no longer count, a challenger is looked for at once, and for up to 16 challenger's runs, at most once in 100
// runs, every second run may explore.
class Deployment {
 public:
  // `problem` is as modelled; the system may be another.
  Deployment(const Problem& problem, Placement incumbent, const DeploymentOptions& options);

  // Returns the placement of the next run, perhaps after a search. It stays the same until the run is observed.
  const Placement& next();
  // Learns what the placement of the last next() took.
  void observe(Seconds makespan, const Timeline& timeline);

  const Placement& incumbent() const { return incumbent_; }
  bool exploring() const { return exploring_; }  // whether next() is a challenger
  std::uint64_t runs() const { return runs_; }
  std::uint64_t explored() const { return explored_; }
  std::uint64_t changes() const { return changes_; }
  const DeviceRatios& ratios() const { return ratios_; }
  const std::vector<DeploymentEvent>& events() const { return events_; }

  static constexpr std::uint64_t kBurst = 16, kRunsPerBurst = 100;

 private:
  struct Challenger {
    Placement placement;
    double promised = 0;              // its makespan over the incumbent's, by the corrected simulator
    std::vector<Seconds> own, rival;  // makespans since the challenge began
    std::size_t tests = 0;
  };

  bool may_explore();
  void search();
  void judge();
  void drop(const std::string& why);
  void promote(double p);
  void watch_for_drift();
  void start_over(const std::string& why, std::vector<std::pair<std::string, double>> numbers);
  Seconds recent_median() const;
  void log(DeploymentEvent::Kind kind, std::string text, std::vector<std::pair<std::string, double>> numbers);

  const Problem problem_;
  const DeploymentOptions options_;
  DeviceRatios ratios_;
  Placement incumbent_;
  std::vector<Seconds> incumbent_times_;  // since the last drift or change
  std::optional<Challenger> challenger_;
  std::vector<Placement> dismissed_;  // challengers since the last drift or change
  bool asked_ = false, exploring_ = false;
  double credit_ = 0;  // runs that exploration has saved up, at most 1
  std::uint64_t burst_ = 0, last_burst_ = 0, next_search_, wait_;
  std::uint64_t runs_ = 0, explored_ = 0, changes_ = 0, searches_ = 0;
  std::vector<DeploymentEvent> events_;
};

}  // namespace doppler
