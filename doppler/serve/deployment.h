#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "doppler/place/learned.h"
#include "doppler/place/search/search_as_measured.h"
#include "doppler/sim/time_ratios.h"

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
    gone,       // devices do not answer
    back,       // a device answers again
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
// take (TimeRatios): the best there of the policy's answer, HEFT's and short annealings, if promised to be better by
// `least_gain` when times vary a little. It is run in turn with the incumbent and takes over only by a one-sided
// Mann-Whitney test: its runs against the incumbent's runs since the challenge began. The test is made at most three
// times, after 6, 10 and 16 runs of the challenger and at least 6 of the incumbent, each with a third of `error`
// (Bonferroni), so that `error` bounds the chance per challenger. Challengers are tests too: between two drifts or
// changes the wait between them doubles, so there are few. A challenger goes if one run takes more than `max_slowdown`
// times the incumbent's recent median, if its median is no better when tested, or after the third test.
//
// It is a drift if a device's ratio has changed (TimeRatios::drifted), or the median of the incumbent's last 8 runs
// lies outside the 5 % to 95 % range of the (12 to 40) runs before, by more than 5 % of their median. Runs before a
// drift no longer count, a challenger is looked for at once, and for up to 16 challenger's runs, at most once in 100
// runs, every second run may explore.
//
// Devices that do not answer are left out at once: if the incumbent needs one, the best that the corrected simulator
// knows on the others takes over without a test. Such a device is asked after now and then, at distances that double
// with every return; once it is back, that is a drift, and the placement before the loss is a candidate again.
class Deployment {
 public:
  // `problem` is as modelled; the system may be another.
  Deployment(const Problem& problem, Placement incumbent, const DeploymentOptions& options);

  // Returns the placement of the next run, perhaps after a search. It stays the same until the run is observed.
  const Placement& next();
  // Learns what the placement of the last next() took.
  void observe(Seconds makespan, const Timeline& timeline);
  // The run of the last next() was lost because these devices do not answer. Throws InfeasibleError, and stays without
  // a placement that can run, if none is found on the others.
  void lose(std::span<const DeviceId> devices);
  // The lost devices that are to be asked before the next run whether they are back.
  std::vector<DeviceId> worth_asking() const;
  // Takes note of the answer of one of them.
  void asked(DeviceId device, bool answers);

  const Placement& incumbent() const { return incumbent_; }
  bool running() const { return asked_; }        // next() was asked, and nobody has said how it went
  bool exploring() const { return exploring_; }  // whether next() is a challenger
  std::uint64_t runs() const { return runs_; }
  std::uint64_t explored() const { return explored_; }
  std::uint64_t changes() const { return changes_; }
  std::uint64_t lost() const { return lost_; }  // runs that did not end because a device was gone
  const TimeRatios& ratios() const { return ratios_; }
  const std::vector<DeploymentEvent>& events() const { return events_; }

  // All that it knows between two runs, as JSON, and how long the log of its decisions is; the options are not part of
  // it. A deployment of the same problem and options that takes it up decides as this one would have.
  std::string save(std::uint64_t log_bytes = 0) const;
  // Returns how long the log was. Throws InputError naming `where`, and takes up nothing, if the state is damaged or of
  // another problem.
  std::uint64_t restore(const std::string& where, std::string_view state);

  static constexpr std::uint64_t kBurst = 16, kRunsPerBurst = 100;

 private:
  struct Challenger {
    Placement placement;
    double promised = 0;              // its makespan over the incumbent's, by the corrected simulator
    std::vector<Seconds> own, rival;  // makespans since the challenge began
    std::size_t tests = 0;
  };

  // A device that does not answer.
  struct Absence {
    DeviceId device = 0;
    std::uint64_t ask_at = 0;  // the number of runs after which it is asked
  };

  bool may_explore();
  MethodOptions search_options();
  Suggestion search_from(std::vector<Placement> known, const MethodOptions& method);
  void search();
  bool can_run(const Placement& placement) const;
  void leave_out_absent();
  void go_on_without_absent();
  Placement replacement();
  void judge();
  void drop(const std::string& why);
  void promote(double p);
  void watch_for_drift();
  std::string fingerprint() const;
  void start_over(DeploymentEvent::Kind kind, const std::string& why,
                  std::vector<std::pair<std::string, double>> numbers);
  Seconds recent_median() const;
  void log(DeploymentEvent::Kind kind, std::string text, std::vector<std::pair<std::string, double>> numbers);

  const Problem problem_;
  Problem present_;  // the same without devices that do not answer
  const DeploymentOptions options_;
  TimeRatios ratios_;
  Placement incumbent_;
  std::vector<Seconds> incumbent_times_;  // since the last drift or change
  std::optional<Challenger> challenger_;
  std::vector<Placement> dismissed_;  // challengers since the last drift or change
  std::optional<Placement> retired_;  // what was the incumbent when a device was lost
  std::vector<Absence> absent_;
  std::vector<std::uint64_t> patience_;  // by device: runs between two questions after it
  bool asked_ = false, exploring_ = false;
  double credit_ = 0;  // runs that exploration has saved up, at most 1
  std::uint64_t burst_ = 0, last_burst_ = 0, next_search_, wait_;
  std::uint64_t runs_ = 0, explored_ = 0, changes_ = 0, lost_ = 0, searches_ = 0;
  std::vector<DeploymentEvent> events_;
};

}  // namespace doppler
