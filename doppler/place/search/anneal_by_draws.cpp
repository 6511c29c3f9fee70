#include "doppler/place/search/anneal_by_draws.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/parallel.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/memory.h"
#include "doppler/place/search/anneal.h"
#include "doppler/place/search/chain.h"

namespace doppler {
namespace {

constexpr double kExactShare = 0.5;        // of the budget goes into annealing by exact times
constexpr std::size_t kJudges = 64;        // draws by which what passes find is judged
constexpr std::size_t kFinalJudges = 256;  // draws by which the best few are
constexpr std::size_t kFinalists = 4;
constexpr double kMostToJudge = 0.05;   // of the time, for the final
constexpr double kWorthDrawing = 20;    // with less than so many times what a judgement takes, there are no passes
constexpr unsigned kMostChains = 4;     // not by the number of threads, on which results must not depend
constexpr double kMovesPerChain = 800;  // per op; a move takes a few simulations
constexpr double kSimulationsPerMove = 4;

class DrawnAnnealing {
 public:
  DrawnAnnealing(const Problem& problem, Objective& objective, const MethodOptions& options)
      : problem_(problem), objective_(objective), options_(options) {
    // One draw tells what many will take, tables included.
    if (!options.budget.has_deadline()) return;
    const Seconds before = options.budget.time_left();
    objective.redrawn({1, Draws::judged})->value(cheap_placement(problem));
    per_draw_ = before - options.budget.time_left();
  }

  // Whether there is enough to spend for passes by draws, and for what judges them.
  bool worthwhile() const {
    return options_.budget.time_left() > kWorthDrawing * kJudges * per_draw_ &&
           static_cast<double>(options_.budget.evaluations()) > kWorthDrawing * kJudges;
  }

  // Ranks the starts that fit in memory, as far as there is time. Without passes the objective's own draws judge.
  void begin(const std::vector<Placement>& starts, bool with_passes) {
    judge_ = with_passes ? objective_.redrawn({kJudges, Draws::judged}) : objective_.another();
    judges_ = with_passes ? kJudges : SampledEvaluator::kDraws;
    for (const Placement& start : starts) {
      if (!candidates_.empty() && options_.budget.out_of_time()) return;
      try {
        if (!objective_.fits_in_memory(start, options_.budget)) continue;
      } catch (const OutOfTime&) {
        return;
      }
      Candidate candidate = judged(start);
      if (candidate.value < best_start_.value) best_start_ = candidate;
      add(std::move(candidate));
    }
  }

  void anneal_exactly(const std::vector<Placement>& starts, double share) {
    if (options_.budget.out_of_time()) return;
    ExactObjective exact(problem_);
    MethodOptions part = options_;
    part.budget = rest().share(share);
    part.on_progress = nullptr;
    try {
      const Proposal found = anneal_from(problem_, exact, part, starts);
      evaluations_ += found.evaluations;
      add(judged(found.placement));
    } catch (const OutOfTime&) {
      // The starts are there.
    }
  }

  void anneal_by_passes() {
    const Budget passes = rest();
    if (candidates_.empty() || passes.out_of_time()) return;
    MethodOptions part = options_;
    part.budget = passes;
    const unsigned count = chain_count(passes);
    const std::uint64_t each =
        passes.evaluations() == Budget::kUnlimited ? Budget::kUnlimited : passes.evaluations() / count;
    const Rng rng(mix(options_.seed, Draws::judged));
    struct Lane {
      std::unique_ptr<SampledEvaluator> draws;
      std::unique_ptr<Chain> chain;
      Candidate found;
    };
    std::vector<Lane> lanes(count);
    for (unsigned i = 0; i < count; ++i) {
      lanes[i].draws = objective_.sampled();
      lanes[i].chain = std::make_unique<Chain>(problem_, std::make_unique<ExactObjective>(problem_), part, rng.split(i),
                                               each, Chain::kHottest);
    }
    std::uint64_t spent = 0;
    while (!passes.out_of_time() && spent < passes.evaluations()) {
      const Candidate from = candidates_.front();
      parallel_for(count, options_.threads, [&](unsigned i) {
        lanes[i].found = Candidate();
        if (!lanes[i].chain->exhausted()) lanes[i].found = lanes[i].chain->sampled_round(from, *lanes[i].draws);
      });
      bool any = false;
      spent = 0;
      for (Lane& lane : lanes) {
        if (!lane.found.empty()) add(judged(lane.found.placement));
        any = any || !lane.chain->exhausted();
        spent += lane.chain->evaluations();
      }
      if (options_.on_progress) options_.on_progress({"anneal", candidates_.front().value, evaluations_ + spent});
      if (!any) break;
    }
    evaluations_ += spent;
  }

  // The best few and the best start, by draws that none of them was chosen by, if there is time for more of these than
  // have judged before. Of equals it is the start.
  Proposal choose() {
    std::vector<Candidate> finalists;
    if (!best_start_.empty()) finalists.push_back(best_start_);
    for (const Candidate& candidate : candidates_)
      if (candidate.placement != best_start_.placement) finalists.push_back(candidate);
    const std::size_t judges = final_judges();
    if (finalists.size() > 1 && judges > judges_ && !options_.budget.interrupted() &&
        options_.budget.time_left() > final_time(judges)) {
      const auto judge = objective_.redrawn({judges, Draws::chosen});
      for (Candidate& candidate : finalists) candidate.value = judge->value(candidate.placement);
      evaluations_ += judges * finalists.size();
    }
    Candidate& best = *std::min_element(finalists.begin(), finalists.end(),
                                        [](const Candidate& a, const Candidate& b) { return a.value < b.value; });
    Proposal proposal;
    proposal.placement = std::move(best.placement);
    proposal.evaluations = evaluations_;
    proposal.placement.cause_of_op.resize(problem_.op_count());
    for (OpId op = 0; op < problem_.op_count(); ++op)
      proposal.placement.cause_of_op[op] = cause_of(problem_, op, Cause::search);
    return proposal;
  }
  bool empty() const { return candidates_.empty(); }

 private:
  static Placement cheap_placement(const Problem& problem) {
    Placement placement;
    for (OpId op = 0; op < problem.op_count(); ++op) placement.device_of_op.push_back(problem.devices(op).front());
    return placement;
  }
  // As many draws as a twentieth of the evaluations pays for.
  std::size_t final_judges() const {
    const double affordable = kMostToJudge * static_cast<double>(options_.budget.evaluations()) / (kFinalists + 1);
    return affordable < kFinalJudges ? static_cast<std::size_t>(affordable) : kFinalJudges;
  }
  Seconds final_time(std::size_t judges) const { return per_draw_ * (kFinalists + 1.0) * static_cast<double>(judges); }
  // What is left when the final is paid for.
  Budget rest() const {
    const Budget rest = options_.budget.less(evaluations_ + final_judges() * (kFinalists + 1));
    if (!rest.has_deadline()) return rest;
    return rest.shifted_by(-std::min(kMostToJudge * std::max(0.0, rest.time_left()), final_time(final_judges())));
  }
  unsigned chain_count(const Budget& budget) const {
    if (budget.evaluations() == Budget::kUnlimited) return std::clamp(options_.threads, 1u, kMostChains);
    const double chains = static_cast<double>(budget.evaluations()) /
                          (kMovesPerChain * kSimulationsPerMove * static_cast<double>(problem_.op_count()));
    return static_cast<unsigned>(std::clamp(chains, 1.0, static_cast<double>(kMostChains)));
  }

  // Judges a placement that fits in memory.
  Candidate judged(const Placement& placement) {
    evaluations_ += judges_;
    return {placement, judge_->value(placement)};
  }
  void add(Candidate candidate) {
    const auto at = std::upper_bound(candidates_.begin(), candidates_.end(), candidate.value,
                                     [](Seconds value, const Candidate& other) { return value < other.value; });
    candidates_.insert(at, std::move(candidate));
    if (candidates_.size() > kFinalists) candidates_.pop_back();
  }

  const Problem& problem_;
  Objective& objective_;
  const MethodOptions& options_;
  Seconds per_draw_ = 0;  // with its tables; 0 without a deadline
  std::unique_ptr<Objective> judge_;
  std::size_t judges_ = 0;
  std::uint64_t evaluations_ = 0;
  std::vector<Candidate> candidates_;  // the best by the judge, best first
  Candidate best_start_;
};

}  // namespace

Proposal anneal_by_draws(const Problem& problem, Objective& objective, const MethodOptions& options,
                         const std::vector<Placement>& starts) {
  DOPPLER_CHECK(!starts.empty(), "no placement to start from");
  DrawnAnnealing annealing(problem, objective, options);
  const bool with_passes = annealing.worthwhile();
  annealing.begin(starts, with_passes);
  annealing.anneal_exactly(starts, with_passes ? kExactShare : 1);
  if (with_passes) annealing.anneal_by_passes();
  if (annealing.empty()) return fit_in_memory(objective, {starts.front()}, options.budget);
  return annealing.choose();
}

}  // namespace doppler
