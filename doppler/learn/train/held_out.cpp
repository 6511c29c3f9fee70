#include "doppler/learn/train/held_out.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/train/zero_shot.h"
#include "doppler/place/cheap_methods.h"

namespace doppler {
namespace {

constexpr std::uint32_t kHeldOutSamples = 16;

MethodOptions within(const Budget& budget) {
  MethodOptions options;
  options.budget = budget;
  return options;
}

}  // namespace

HeldOut::HeldOut(std::vector<std::unique_ptr<Task>> tasks) : tasks_(std::move(tasks)) {
  for (const auto& task : tasks_) {
    Seconds best = Costs::kNever;
    ask(quick_methods(task->problem()), task->problem(), task->objective(), within(Budget::unlimited()),
        [&](std::string_view, const Proposal& found) {
          best = std::min(best, task->objective().value(found.placement));
        });
    if (best == Costs::kNever)
      throw InfeasibleError(task->name() + ": no heuristic found a placement that fits in memory");
    reference_.push_back(best);
  }
}

double HeldOut::score(Policy& policy, const Budget& budget) const {
  double sum = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    Objective& objective = tasks_[i]->objective();
    const Seconds value =
        objective.value(zero_shot(policy, objective.problem(), objective, kHeldOutSamples, within(budget)).placement);
    if (budget.out_of_time()) throw OutOfTime();  // There may have been more to find.
    if (reference_[i] > 0 && value > 0) sum += std::log(value / reference_[i]);
  }
  return tasks_.empty() ? 1 : std::exp(sum / static_cast<double>(tasks_.size()));
}

}  // namespace doppler
