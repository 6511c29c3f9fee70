#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "doppler/method.h"
#include "doppler/place/search/candidate.h"
#include "doppler/place/search/search_state.h"
#include "doppler/sim/ordered_evaluator.h"
#include "doppler/sim/sampled_evaluator.h"

namespace doppler {

// One chain of simulated annealing: a sequence of cooling passes. Internal to the annealers.
class Chain {
 public:
  static constexpr double kHottest = 3e-2;  // the hottest start of a pass, relative to the makespan

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

  // One cooling pass by the mean over fresh draws of times that vary, from a placement that fits in memory. Returns the
  // best by those draws, which still has to be judged by others.
  Candidate sampled_round(const Candidate& from, SampledEvaluator& draws) {
    const bool first = sampled_rounds_++ == 0;
    state_.assign(from.placement);
    draws.draw(rng_.bits());
    Candidate best;
    const std::uint64_t evaluations_before = evaluations_, simulations_before = draws.simulations();
    // Every simulation counts, and cool() has counted the move that is being attempted.
    const auto count = [&](Seconds value) {
      evaluations_ = evaluations_before + draws.simulations() - simulations_before;
      return value;
    };
    const auto attempt = [&](Seconds limit) {
      return count(draws.change(state_.device_of_op(), ranks(), limit, rng_));
    };
    const auto look = [&] {
      draws.critical_chain(state_.device_of_op(), ranks(), rng_, critical_);
      state_.focus(critical_, kFocus);
    };
    const auto improved = [&](Seconds value) {
      if (fits()) keep(best, value);
    };
    const Seconds current = count(draws.reset(state_.device_of_op(), ranks()));
    keep(best, current);
    const std::uint64_t steps = kSampledStepsPerOp * problem_.op_count();
    cool(current, first ? kFirstSampledHeat : log_uniform(kCoolestSampled, kHottestSampled), steps, attempt, improved,
         look);
    state_.focus({}, 0);
    return best;
  }

  const Candidate& best() const { return best_; }
  std::uint64_t evaluations() const { return evaluations_; }
  // Moves that change nothing cost little but not nothing: on a graph where nothing can move they are all there is.
  bool exhausted() const { return evaluations_left_ <= evaluations_ + idle_moves_ / 8; }

 private:
  // By experiment on the published graphs, where they are not critical.
  static constexpr double kCoolest = 2e-3;           // start temperatures, relative to the makespan
  static constexpr double kCooling = 100;            // from the start of a pass to its end
  static constexpr double kDescent = 0.9;            // from this part of a pass on nothing worse is accepted
  static constexpr std::uint64_t kStepsPerOp = 400;  // of a pass
  static constexpr double kLargestShare =
      0.7;  // of what is left goes into one pass, so that a short budget gets cold in time
  static constexpr std::uint64_t kLongPass = 4;  // every fourth pass or so is longer by this factor
  static constexpr double kFocus = 0.8;          // of the simulated moves begin on the chain that explains the makespan
  static constexpr std::uint64_t kStepsPerLook = 32;  // before that chain is looked up again
  static constexpr double kFewStepsPerOp = 20;  // with fewer, a pass starts cooler: it cannot cross barriers anyway
  // The same for passes by draws.
  static constexpr double kFirstSampledHeat = 2e-3, kCoolestSampled = 3e-4, kHottestSampled = 6e-3;
  static constexpr std::uint64_t kSampledStepsPerOp = 60;

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
  // Whether the state is known to fit in memory.
  bool fits() {
    if (!problem_.memory_limited()) return true;
    Placement placement;
    placement.device_of_op.assign(state_.device_of_op().begin(), state_.device_of_op().end());
    placement.priority.assign(ranks().begin(), ranks().end());
    try {
      return objective_->fits_in_memory(placement, options_.budget);
    } catch (const OutOfTime&) {
      return false;
    }
  }
  // Keeps the state if it is this chain's best and fits in memory.
  bool record(Seconds makespan) {
    if (makespan >= best_.value) return true;
    if (!fits()) return false;
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
  unsigned rounds_ = 0, sampled_rounds_ = 0;
  const Discipline discipline_;
  const bool ranked_;
  SearchState state_;
  std::unique_ptr<OrderedEvaluator> ordered_;
  Placement start_;
  std::vector<OpId> critical_;
  Candidate best_;
  Candidate ordered_best_;  // by strict order, when the rules are `priority`
};

}  // namespace doppler
