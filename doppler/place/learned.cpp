#include "doppler/place/learned.h"

#include "doppler/base/error.h"
#include "doppler/place/list/etf.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/single.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

struct Rival {
  std::string_view name;
  Proposal (*run)(const Problem&, const MethodOptions&);
};
constexpr Rival kRivals[] = {{"heft", heft}, {"etf", etf}, {"single", single}};

}  // namespace

Proposal doppler_policy(const Problem& problem, const MethodOptions& options) {
  if (options.policy == nullptr)
    throw InputError("method doppler: no policy is loaded; required a checkpoint (--checkpoint)");
  Simulator simulator(problem);
  Proposal best;
  Seconds best_makespan = Costs::kNever;
  std::uint64_t evaluations = 0;
  std::string why_not;
  const auto consider = [&](std::string_view name, auto run) {
    try {
      Proposal proposal = run();
      evaluations += proposal.evaluations + 1;
      const Seconds makespan = simulator.makespan(proposal.placement);
      if (makespan >= best_makespan) return;
      best_makespan = makespan;
      best = std::move(proposal);
      best.winner = name;
    } catch (const InfeasibleError& error) {
      if (why_not.empty()) why_not = error.what();
    }
  };
  consider("doppler", [&] { return options.policy->answer(problem, options); });
  if (!options.policy->alone())
    for (const auto& [name, run] : kRivals) consider(name, [&] { return run(problem, options); });
  if (best_makespan == Costs::kNever) throw InfeasibleError(why_not);
  best.evaluations = evaluations;
  return best;
}

}  // namespace doppler
