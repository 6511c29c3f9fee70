#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "doppler/executor.h"
#include "doppler/objective.h"
#include "doppler/sim/time_ratios.h"

namespace doppler {

struct MeasuredObjectiveOptions {
  std::size_t repeats = 3;    // runs of a placement that is promising, of which the median counts
  double max_slowdown = 1.2;  // against the incumbent
};

// Real runs as an objective, for a system that is noisy, slow to ask and perhaps in use:
//   - a placement is run up to `repeats` times, and never again: what was measured is remembered;
//   - it is run a second time only if the first run was at most kPromising times what the fastest one takes;
//   - one that the simulator predicts to take more than `max_slowdown` times as long as the incumbent, or not to fit in
//     memory, is not run at all: it is worth its prediction, scaled by how the incumbent's prediction was off;
//   - once there is a predictor that knows more than the model (predict_by()), it takes the model's place, and only what
//     it says may be faster than the fastest known is run at all.
class MeasuredObjective final : public Objective {
 public:
  // Placements are run on `executor`, and predicted for `problem`: its own, or another model of it.
  MeasuredObjective(std::shared_ptr<Executor> executor, const Problem& problem, MeasuredObjectiveOptions options = {});

  std::string_view name() const override { return "measured"; }
  // Needs an incumbent.
  Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) override;
  using Objective::value;
  // Shares everything that was measured, the incumbent and the system, which runs one placement at a time.
  std::unique_ptr<Objective> another() const override;

  // The placement that is served otherwise: the yardstick. Runs it unless its times are known.
  void set_incumbent(const Placement& placement);
  Seconds incumbent_time() const;

  // From now on what was not measured is predicted by `predictor`, times what the fastest known placement took over its
  // prediction, and at most `new_placements` are run because it says that they may be faster: those whose prediction,
  // less one standard deviation of what it was wrong so far, is less than the fastest known.
  void predict_by(std::shared_ptr<Objective> predictor, std::uint64_t new_placements);

  // Whether value() would go by the prediction because the placement is much slower or does not fit.
  bool would_refuse(const Placement& placement);
  // Whether the placement was run.
  bool knows(const Placement& placement) const;
  // The same as value() for a placement that somebody who knows better than the simulator suggests: never refused.
  Seconds measure(const Placement& placement);
  // Runs it once more, without asking what is known; remembered too.
  Seconds run(const Placement& placement);

  std::uint64_t runs() const;     // of the system, with those that were recalled
  std::uint64_t reused() const;   // evaluations that cost no run
  std::uint64_t refused() const;  // evaluations by prediction

  // What the runs say of the system: the timelines of this process or, from a system that keeps none, all makespans.
  // None: too little was measured.
  std::optional<TimeRatios> ratios() const;

  // What two placements have in common exactly if they run alike: devices, and priorities where the rules read them.
  std::uint64_t key(const Placement& placement) const;
  // `keep` is called after every run of the system, so that it can be kept; recall() takes it back in a later process,
  // in the same order. The first `settled` of them are known from the beginning, before or after they are recalled;
  // each of the others takes the place of a run when its placement is to be run again.
  void on_run(std::function<void(const Placement& placement, Seconds time)> keep);
  void recall(const Placement& placement, Seconds time);
  void settle(std::uint64_t settled);
  std::uint64_t used() const;  // runs without recalled ones that nobody has asked for again

  static constexpr double kPromising = 1.05;

 private:
  struct Entry {
    Placement placement;
    std::vector<Seconds> times;
  };
  // What all copies share. One system: whoever asks waits until it is free.
  struct Shared {
    Shared(std::shared_ptr<Executor> system, const Problem& problem) : executor(std::move(system)), ratios(problem) {}
    std::recursive_mutex mutex;
    std::shared_ptr<Executor> executor;
    std::function<void(const Placement& placement, Seconds time)> on_run;
    TimeRatios ratios;
    bool observed = false;
    Seconds incumbent_time = 0, incumbent_prediction = 0;
    // What was run, in the order of the first runs, and where each is, by key.
    std::vector<Entry> entries;
    std::unordered_map<std::uint64_t, std::size_t> index;  // looked up, never iterated
    std::vector<std::pair<Placement, Seconds>> recalled;   // not asked for yet
    std::uint64_t settled = 0;
    std::shared_ptr<Objective> predictor;
    Seconds scale = 1;  // of its predictions
    double doubt = 0;   // the standard deviation of the logarithm of what it was wrong
    std::uint64_t new_placements = 0;
    std::uint64_t runs = 0, reused = 0, refused = 0;
  };
  const Entry* find(const Placement& placement) const;
  void add(const Placement& placement, Seconds time);
  Seconds best_time() const;
  Seconds predicted(const Placement& placement);
  MeasuredObjective(std::shared_ptr<Shared> shared, const Problem& problem, MeasuredObjectiveOptions options);

  std::shared_ptr<Shared> shared_;
  MeasuredObjectiveOptions options_;
  bool ranked_;  // the discipline reads priorities
};

}  // namespace doppler
