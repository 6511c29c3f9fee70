#include "doppler/learn/train/held_out.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/train/zero_shot.h"
#include "doppler/place/list/etf.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/single.h"

namespace doppler {
namespace {

constexpr std::uint32_t kHeldOutSamples = 16;

MethodOptions without_limit() {
  MethodOptions options;
  options.budget = Budget::unlimited();
  return options;
}

}  // namespace

Validation::Validation(std::vector<std::unique_ptr<OwnedTask>> tasks) : tasks_(std::move(tasks)) {
  for (const auto& owned : tasks_) {
    Simulator simulator(owned->problem());
    Seconds best = Costs::kNever;
    for (const auto method : {heft, etf, single}) try {
        best = std::min(best, simulator.makespan(method(owned->problem(), without_limit()).placement));
      } catch (const InfeasibleError&) {
        // Another may fit in memory.
      }
    if (best == Costs::kNever)
      throw InfeasibleError(owned->task().name() + ": no heuristic found a placement that fits in memory");
    reference_.push_back(best);
  }
}

double Validation::score(Network<float>& network) const {
  double sum = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Problem& problem = tasks_[i]->problem();
    const Seconds makespan =
        Simulator(problem).makespan(zero_shot(network, problem, kHeldOutSamples, without_limit()).placement);
    if (reference_[i] > 0 && makespan > 0) sum += std::log(makespan / reference_[i]);
  }
  return tasks_.empty() ? 1 : std::exp(sum / static_cast<double>(tasks_.size()));
}

}  // namespace doppler
