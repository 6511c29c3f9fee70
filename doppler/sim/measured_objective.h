#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "doppler/executor.h"
#include "doppler/objective.h"
#include "doppler/sim/time_ratios.h"

namespace doppler {

struct MeasuredObjectiveOptions {
  std::size_t repeats = 3;    // runs per placement, of which the median counts
  double max_slowdown = 1.2;  // against the incumbent
};

// Real runs as an objective, for a system that is noisy, slow to ask and perhaps in use:
//   - a placement is run `repeats` times, and never again: what was measured is remembered;
//   - one that the simulator predicts to take more than `max_slowdown` times as long as the incumbent, or not to fit in
//     memory, is not run at all: it is worth its prediction, scaled by how the incumbent's prediction was off;
//   - one whose first run takes more than `max_slowdown` times as long as the incumbent is not run a second time.
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

  // Whether value() would go by the prediction.
  bool would_refuse(const Placement& placement);
  // The same as value() for a placement that somebody who knows better than the simulator suggests: never refused.
  Seconds measure(const Placement& placement);
  // Runs it once more, without asking what is known; remembered too.
  Seconds run(const Placement& placement);

  std::uint64_t runs() const;     // of the system, with those that were recalled
  std::uint64_t reused() const;   // evaluations that cost no run
  std::uint64_t refused() const;  // evaluations by prediction

  // What the runs of this process say of the devices; null: there was none.
  const TimeRatios* ratios() const;

  // What two placements have in common exactly if they run alike: devices, and priorities where the rules read them.
  std::uint64_t key(const Placement& placement) const;
  // `keep` is called after every run of the system, so that it can be kept; recall() takes it back in a later process.
  void on_run(std::function<void(std::uint64_t key, Seconds time)> keep);
  void recall(std::uint64_t key, Seconds time);

 private:
  // What all copies share. One system: whoever asks waits until it is free.
  struct Shared {
    Shared(std::shared_ptr<Executor> system, const Problem& problem) : executor(std::move(system)), ratios(problem) {}
    std::recursive_mutex mutex;
    std::shared_ptr<Executor> executor;
    std::function<void(std::uint64_t key, Seconds time)> on_run;
    TimeRatios ratios;
    bool observed = false;
    Seconds incumbent_time = 0, incumbent_prediction = 0;
    std::unordered_map<std::uint64_t, std::vector<Seconds>> times;  // by key; looked up, never iterated
    std::uint64_t runs = 0, reused = 0, refused = 0;
  };
  MeasuredObjective(std::shared_ptr<Shared> shared, const Problem& problem, MeasuredObjectiveOptions options);

  std::shared_ptr<Shared> shared_;
  MeasuredObjectiveOptions options_;
  bool ranked_;  // the discipline reads priorities
};

}  // namespace doppler
