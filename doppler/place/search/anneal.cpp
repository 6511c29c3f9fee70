#include "doppler/place/search/anneal.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "doppler/base/error.h"
#include "doppler/base/parallel.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/list/single.h"
#include "doppler/place/memory.h"
#include "doppler/place/search/candidate.h"
#include "doppler/place/search/search_state.h"
#include "doppler/sim/ordered_evaluator.h"

namespace doppler {
namespace {

// All by experiment on the published graphs, where they are not critical.
constexpr unsigned kChains = 4;         // at most; not by the number of threads, on which results must not depend
constexpr double kStepsPerChain = 800;  // per op: with less than this for each, fewer chains do better
constexpr double kHottest = 3e-2;       // start temperatures, relative to the makespan
constexpr double kCoolest = 2e-3;
constexpr double kGiven = 1e-3;             // of the first pass from given placements: they are not to be melted
constexpr double kCooling = 100;            // from the start of a pass to its end
constexpr double kDescent = 0.9;            // from this part of a pass on nothing worse is accepted
constexpr std::uint64_t kStepsPerOp = 400;  // of a pass
constexpr double kLargestShare = 0.7;   // of what is left goes into one pass, so that a short budget gets cold in time
constexpr std::uint64_t kLongPass = 4;  // every fourth pass or so is longer by this factor
constexpr double kFocus = 0.8;          // of the simulated moves begin on the chain that explains the makespan
constexpr std::uint64_t kStepsPerLook = 32;  // before that chain is looked up again
constexpr double kFewStepsPerOp = 20;        // with fewer, a pass starts cooler: it cannot cross barriers anyway

constexpr double kFewEvaluations = 20;  // a search costs as much before it begins

class Chain {
 public:
  Chain(const Problem& problem, std::unique_ptr<Objective> objective, const MethodOptions& options, Rng rng,
        std::uint64_t evaluations, double first_heat)
      : problem_(problem),
        objective_(std::move(objective)),
        options_(options),
        rng_(rng),
        evaluations_left_(evaluations),
        first_heat_(first_heat),
        discipline_(problem.rules().bulk_synchronous ? Discipline::fifo : problem.rules().discipline),
        ranked_(discipline_ == Discipline::priority || discipline_ == Discipline::ordered),
        state_(problem, ranked_) {
    if (ranked_) ordered_ = objective_->ordered();
  }

  // Begins at `start`; true if it fits in memory.
  bool begin(const Placement& start) {
    state_.assign(start);
    start_ = start;
    ++evaluations_;
    return record(objective_->value(state_.device_of_op(), ranks()));
  }

  // One cooling pass. `common` is the best of all chains so far.
  void round(const Candidate& common) {
    const bool first = rounds_++ == 0;
    const double heat = first ? first_heat_ : log_uniform(kCoolest, kHottest);
    const std::uint64_t steps = kStepsPerOp * problem_.op_count() * (rng_.below(4) == 0 ? kLongPass : 1);
    if (discipline_ == Discipline::priority && ordered_) {
      if (first || rng_.below(2) == 0) {
        if (!first) choose_start(ordered_best_);
        anneal_ordered(heat, steps, ordered_best_);
      } else if (!common.empty()) {
        state_.assign(common.placement);
      }
      anneal_simulated(heat / 3, steps / 4);
    } else {
      if (!first) choose_start(common);
      if (ordered_) {
        anneal_ordered(heat, steps, best_);
      } else {
        anneal_simulated(heat, steps);
      }
    }
  }

  const Candidate& best() const { return best_; }
  std::uint64_t evaluations() const { return evaluations_; }
  // Moves that change nothing cost little but not nothing: on a graph where nothing can move they are all there is.
  bool exhausted() const { return evaluations_left_ <= evaluations_ + idle_moves_ / 8; }

 private:
  std::span<const std::uint32_t> ranks() const { return ranked_ ? state_.rank() : std::span<const std::uint32_t>(); }
  double log_uniform(double low, double high) { return std::exp(rng_.uniform(std::log(low), std::log(high))); }

  // Mostly the best so far, sometimes this chain's last state, now and then a random placement.
  void choose_start(const Candidate& best) {
    const double dice = rng_.uniform();
    if (dice < 0.6) {
      if (!best.empty()) state_.assign(best.placement);
    } else if (dice < 0.75 && !problem_.memory_limited()) {
      for_each_unit(problem_, [&](OpId op) {
        const auto devices = problem_.devices(op);
        const DeviceId device = devices[rng_.below(static_cast<std::uint32_t>(devices.size()))];
        for (const OpId member : problem_.unit(op)) start_.device_of_op[member] = device;
      });
      start_.priority.clear();
      state_.assign(start_);
    }
  }

  void keep(Candidate& best, Seconds makespan) const {
    best.value = makespan;
    best.placement.device_of_op.assign(state_.device_of_op().begin(), state_.device_of_op().end());
    best.placement.priority.assign(ranks().begin(), ranks().end());
  }
  // Keeps the state if it is this chain's best and fits in memory.
  bool record(Seconds makespan) {
    if (makespan >= best_.value) return true;
    if (problem_.memory_limited()) {
      Placement placement;
      placement.device_of_op.assign(state_.device_of_op().begin(), state_.device_of_op().end());
      placement.priority.assign(ranks().begin(), ranks().end());
      try {
        if (!objective_->fits_in_memory(placement, options_.budget)) return false;
      } catch (const OutOfTime&) {
        return false;  // what is not known to fit is not kept
      }
    }
    keep(best_, makespan);
    return true;
  }

  void anneal_simulated(double heat, std::uint64_t steps) {
    ++evaluations_;
    const Seconds current = objective_->value(state_.device_of_op(), ranks());
    record(current);
    const auto attempt = [&](Seconds limit) {
      const Seconds makespan = objective_->value(state_.device_of_op(), ranks());
      return makespan <= limit ? makespan : Costs::kNever;
    };
    const auto look = [&] {
      ++evaluations_;
      objective_->critical_chain(state_.device_of_op(), ranks(), critical_);
      state_.focus(critical_, kFocus);
    };
    const auto improved = [&](Seconds makespan) { record(makespan); };
    cool(current, heat, steps, attempt, improved, look);
    state_.focus({}, 0);
  }

  void anneal_ordered(double heat, std::uint64_t steps, Candidate& best) {
    ++evaluations_;
    const Seconds current = ordered_->reset(state_.device_of_op(), state_.order(), state_.rank());
    const auto attempt = [&](Seconds limit) {
      return ordered_->change(state_.device_of_op(), state_.order(), state_.rank(), state_.first_touched(),
                              state_.last_touched(), limit);
    };
    const auto improved = [&](Seconds makespan) {
      if (&best == &best_) {
        record(makespan);
      } else if (makespan < best.value) {
        keep(best, makespan);
      }
    };
    improved(current);
    cool(current, heat, steps, attempt, improved, [] {});  // moves are cheaper here than to look
  }

  // attempt(limit): the makespan of the state if it is within the limit, else infinity. look(): called now and then
  // after changes.
  template <typename Attempt, typename Improved, typename Look>
  void cool(Seconds current, double heat, std::uint64_t steps, Attempt attempt, Improved improved, Look look) {
    bool changed = true;
    const Budget pass = options_.budget.share(kLargestShare);
    const Seconds allowance = pass.has_deadline() ? std::max(pass.time_left(), 1e-6) : Costs::kNever;
    const std::uint64_t left = exhausted() ? 0 : evaluations_left_ - evaluations_ - idle_moves_ / 8;
    const auto share = static_cast<std::uint64_t>(kLargestShare * static_cast<double>(left));
    steps = std::min(steps, std::max<std::uint64_t>(share, 1));
    const std::uint64_t check_every = std::clamp<std::uint64_t>(20'000 / problem_.op_count(), 1, 64);
    Seconds lowest = current;
    const double few = kFewStepsPerOp * problem_.op_count();
    double scale = std::min(1.0, static_cast<double>(steps) / few) * heat * current;
    double temperature = scale;
    for (std::uint64_t step = 0; step < steps && !exhausted(); ++step) {
      if (step % check_every == 0) {
        if (options_.budget.out_of_time() || reaches(lowest, options_.known_bound)) return;
        double progress = static_cast<double>(step) / static_cast<double>(steps);
        if (pass.has_deadline()) {
          const double time_used = 1 - pass.time_left() / allowance;
          if (step == check_every && time_used > 0)  // the first measurement of how far the time will carry
            scale = std::min(scale, static_cast<double>(check_every) / time_used / few * heat * current);
          progress = std::max(progress, time_used);
        }
        if (progress >= 1) return;
        temperature = progress < kDescent ? scale * std::pow(kCooling, -progress) : 0;
      }
      if (changed && step % kStepsPerLook == 0) {
        look();
        changed = false;
      }
      if (!state_.move(rng_)) {
        ++idle_moves_;
        continue;
      }
      ++evaluations_;
      // Metropolis: accept a rise of at most -T·log(uniform).
      const Seconds makespan = attempt(current - temperature * std::log(1.0 - rng_.uniform()));
      if (makespan == Costs::kNever) {
        state_.undo();
        continue;
      }
      current = makespan;
      changed = true;
      if (makespan < lowest) {
        lowest = makespan;
        improved(makespan);
      }
    }
  }

  const Problem& problem_;
  const std::unique_ptr<Objective> objective_;
  const MethodOptions& options_;
  Rng rng_;
  std::uint64_t evaluations_left_;
  const double first_heat_;
  std::uint64_t evaluations_ = 0, idle_moves_ = 0;
  unsigned rounds_ = 0;
  const Discipline discipline_;
  const bool ranked_;
  SearchState state_;
  std::unique_ptr<OrderedEvaluator> ordered_;
  Placement start_;
  std::vector<OpId> critical_;
  Candidate best_;
  Candidate ordered_best_;  // by strict order, when the rules are `priority`
};

void sort_by_value(std::vector<Placement>& placements, Objective& objective) {
  std::vector<std::pair<Seconds, Placement>> sorted;
  for (Placement& placement : placements) {
    const Seconds value = objective.value(placement);
    sorted.emplace_back(value, std::move(placement));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < sorted.size(); ++i) placements[i] = std::move(sorted[i].second);
}

// On a short budget one chain gets further than several that begin alike and stop half-way. How short a time is, is
// known by the time of one evaluation. 0: too short for anything.
unsigned chain_count(const MethodOptions& options, const Placement& start, Objective& objective) {
  const Budget& budget = options.budget;
  double affordable =
      budget.evaluations() == Budget::kUnlimited ? Costs::kNever : static_cast<double>(budget.evaluations());
  if (budget.has_deadline()) {
    const Seconds before = budget.time_left();
    objective.value(start);
    const Seconds after = budget.time_left();
    affordable = std::min(affordable, options.threads * after / std::max(before - after, 1e-9));
    if (affordable < kFewEvaluations) return 0;
  }
  const double chains = affordable / (kStepsPerChain * static_cast<double>(start.device_of_op.size()));
  const auto count = static_cast<unsigned>(std::clamp(chains, 1.0, static_cast<double>(kChains)));
  // Against a deadline idle threads would be wasted.
  return budget.evaluations() == Budget::kUnlimited ? std::max(count, std::min(options.threads, kChains)) : count;
}

Proposal run_chains(const Problem& problem, Objective& objective, const MethodOptions& options,
                    std::vector<Placement> starts, double first_heat) {
  DOPPLER_CHECK(!starts.empty(), "no placement to start from");
  sort_by_value(starts, objective);
  const unsigned count = chain_count(options, starts.front(), objective);
  const Rng rng(options.seed);
  const std::uint64_t total = options.budget.evaluations();
  const std::uint64_t each =
      total == Budget::kUnlimited ? total : std::max<std::uint64_t>(total / std::max(count, 1u), 1);
  std::vector<std::unique_ptr<Chain>> chains(count);
  Candidate best;
  const auto meet = [&] {
    for (const auto& chain : chains)
      if (chain->best().value < best.value) best = chain->best();
  };
  const auto evaluations = [&] {
    std::uint64_t sum = 0;
    for (const auto& chain : chains) sum += chain->evaluations();
    return sum;
  };
  parallel_for(count, options.threads, [&](unsigned i) {
    chains[i] = std::make_unique<Chain>(problem, objective.another(), options, rng.split(i), each, first_heat);
    // Its share of the starts; it goes on from the last, the best.
    for (std::size_t start = starts.size(); start-- > 0;)
      if (start % count == i % starts.size()) chains[i]->begin(starts[start]);
  });
  meet();
  while (!options.budget.out_of_time() && !reaches(best.value, options.known_bound) &&
         std::any_of(chains.begin(), chains.end(), [](const auto& chain) { return !chain->exhausted(); })) {
    parallel_for(count, options.threads, [&](unsigned i) { chains[i]->round(best); });
    meet();
    if (options.on_progress) options.on_progress({"anneal", best.value, evaluations()});
  }

  Proposal proposal;
  proposal.evaluations = evaluations();
  const bool fits = !best.empty();
  proposal.placement = fits ? std::move(best.placement) : starts.front();
  proposal.placement.cause_of_op.resize(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op)
    proposal.placement.cause_of_op[op] = cause_of(problem, op, Cause::search);
  if (!fits && count > 0) return fit_in_memory(objective, std::move(proposal), options.budget);
  if (problem.memory_limited()) ++proposal.evaluations;  // the one by which it is known to fit
  return proposal;
}

}  // namespace

Proposal anneal_from(const Problem& problem, Objective& objective, const MethodOptions& options,
                     const std::vector<Placement>& starts) {
  return run_chains(problem, objective, options, starts, kGiven);
}

Proposal anneal(const Problem& problem, Objective& objective, const MethodOptions& options) {
  std::vector<Placement> starts;
  for (const auto start : {heft, single}) {
    try {
      starts.push_back(start(problem, objective, options).placement);
    } catch (const OutOfTime&) {
      if (starts.empty() && start == single) throw;
    }
  }
  return run_chains(problem, objective, options, starts, kHottest);
}

}  // namespace doppler
