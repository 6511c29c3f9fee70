#include "doppler/calibrate/rounds.h"

#include <numeric>

#include "doppler/base/error.h"

namespace doppler {

void run_round(std::vector<TimedPlacement>& placements, Rng& rng, const std::function<void(TimedPlacement&)>& run) {
  std::vector<std::size_t> order(placements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[rng.below(static_cast<std::uint32_t>(left))]);
  for (const std::size_t next : order) {
    if (!placements[next].fits) continue;
    try {
      run(placements[next]);
    } catch (const InfeasibleError&) {
      placements[next].fits = false;
    }
  }
}

std::vector<Seconds> time_repeatedly(Executor& executor, const Placement& placement, unsigned warmup, unsigned repeat) {
  for (unsigned i = 0; i < warmup; ++i) executor.time(placement);
  std::vector<Seconds> times;
  for (unsigned i = 0; i < repeat; ++i) times.push_back(executor.time(placement));
  return times;
}

}  // namespace doppler
