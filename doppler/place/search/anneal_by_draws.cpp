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
constexpr unsigned kMostChains = 4;     // not by the number of threads, on which results must not depend
constexpr double kMovesPerChain = 800;  // per op; a move takes a few simulations
constexpr double kSimulationsPerMove = 4;
enum Stream : std::uint64_t { kJudging = 2, kFinal = 3 };  // 0 is for reports, 1 for the objective itself

class DrawnAnnealing {
 public:
  DrawnAnnealing(const Problem& problem, Objective& objective, const MethodOptions& options)
      : problem_(problem), objective_(objective), options_(options), judge_(objective.redrawn({kJudges, kJudging})) {
    const Seconds before = options.budget.time_left();
    judge_->value(cheap_placement());
    if (options.budget.has_deadline()) judging_ = before - options.budget.time_left();
    if (options.budget.evaluations() < Budget::kUnlimited)
      final_judges_ = std::clamp<std::size_t>(
          static_cast<std::size_t>(kMostToJudge * static_cast<double>(options.budget.evaluations()) / (kFinalists + 1)),
          kJudges / 4, kFinalJudges);
  }

  // Too little time for draws: what the starts are worth by the objective is all that there is.
  bool hopeless() const {
    return options_.budget.time_left() < 4 * judging_ || options_.budget.evaluations() < 4 * kJudges;
  }

  void begin(const std::vector<Placement>& starts) {
    for (const Placement& start : starts) {
      if (!objective_.fits_in_memory(start, options_.budget)) continue;
      Candidate candidate = judged(start);
      if (candidate.value < best_start_.value) best_start_ = candidate;
      add(std::move(candidate));
    }
  }

  void anneal_exactly(const std::vector<Placement>& starts) {
    ExactObjective exact(problem_);
    MethodOptions part = options_;
    part.budget = rest().share(kExactShare);
    part.on_progress = nullptr;
    const Proposal found = anneal_from(problem_, exact, part, starts);
    evaluations_ += found.evaluations;
    add(judged(found.placement));
  }

  void anneal_by_passes() {
    const Budget passes = rest();
    MethodOptions part = options_;
    part.budget = passes;
    const unsigned count = chain_count(passes);
    const std::uint64_t each =
        passes.evaluations() == Budget::kUnlimited ? Budget::kUnlimited : passes.evaluations() / count;
    const Rng rng(mix(options_.seed, kJudging));
    struct Lane {
      std::unique_ptr<SampledEvaluator> draws;
      std::unique_ptr<Chain> chain;
      Candidate found;
    };
    std::vector<Lane> lanes(count);
    parallel_for(count, options_.threads, [&](unsigned i) {
      lanes[i].draws = objective_.sampled();
      lanes[i].chain =
          std::make_unique<Chain>(problem_, objective_.another(), part, rng.split(i), each, Chain::kHottest);
    });
    while (!passes.out_of_time() &&
           std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return !lane.chain->exhausted(); })) {
      const Candidate from = candidates_.front();
      parallel_for(count, options_.threads, [&](unsigned i) {
        Lane& lane = lanes[i];
        lane.found = Candidate();
        if (lane.chain->exhausted()) return;
        lane.found = lane.chain->sampled_round(from, *lane.draws);
      });
      for (Lane& lane : lanes)
        if (!lane.found.empty()) add(judged(lane.found.placement));
      std::uint64_t spent = 0;
      for (const Lane& lane : lanes) spent += lane.chain->evaluations();
      if (options_.on_progress) options_.on_progress({"anneal", candidates_.front().value, evaluations_ + spent});
    }
    for (const Lane& lane : lanes) evaluations_ += lane.chain->evaluations();
  }

  // The best few and the best start, by draws that none of them was chosen by. Of equals it is the start.
  Proposal choose() {
    std::vector<Candidate> finalists;
    if (!best_start_.empty()) finalists.push_back(best_start_);
    for (const Candidate& candidate : candidates_)
      if (candidate.placement != best_start_.placement) finalists.push_back(candidate);
    const auto by_value = [](const Candidate& a, const Candidate& b) { return a.value < b.value; };
    if (const auto judge = objective_.redrawn({affordable_judges(finalists.size()), kFinal}))
      for (Candidate& candidate : finalists) candidate.value = judge->value(candidate.placement);
    evaluations_ += final_judges_ * finalists.size();
    Candidate& best = *std::min_element(finalists.begin(), finalists.end(), by_value);
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
  Placement cheap_placement() const {
    Placement placement;
    for (OpId op = 0; op < problem_.op_count(); ++op) placement.device_of_op.push_back(problem_.devices(op).front());
    return placement;
  }
  // What is left when the final is paid for.
  Budget rest() const {
    Budget rest = options_.budget.less(evaluations_ + final_judges_ * (kFinalists + 1));
    if (!rest.has_deadline()) return rest;
    const Seconds final_time = judging_ * (kFinalists + 1.0) * static_cast<double>(final_judges_) / kJudges;
    return rest.shifted_by(-std::min(kMostToJudge * std::max(0.0, rest.time_left()), final_time));
  }
  // As many draws for the final as there is time for.
  std::size_t affordable_judges(std::size_t finalists) const {
    if (judging_ <= 0) return final_judges_;
    const double affordable = std::max(0.0, options_.budget.time_left()) / (judging_ * static_cast<double>(finalists));
    return std::clamp<std::size_t>(static_cast<std::size_t>(affordable * kJudges), 1, final_judges_);
  }
  unsigned chain_count(const Budget& budget) const {
    if (budget.evaluations() == Budget::kUnlimited) return std::clamp(options_.threads, 1u, kMostChains);
    const double chains = static_cast<double>(budget.evaluations()) /
                          (kMovesPerChain * kSimulationsPerMove * static_cast<double>(problem_.op_count()));
    return static_cast<unsigned>(std::clamp(chains, 1.0, static_cast<double>(kMostChains)));
  }

  // Judges a placement that fits in memory.
  Candidate judged(const Placement& placement) {
    evaluations_ += kJudges;
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
  std::unique_ptr<Objective> judge_;
  Seconds judging_ = 0;  // one candidate; 0 without a deadline
  std::size_t final_judges_ = kFinalJudges;
  std::uint64_t evaluations_ = 0;
  std::vector<Candidate> candidates_;  // the best by the judge, best first
  Candidate best_start_;
};

}  // namespace

Proposal anneal_by_draws(const Problem& problem, Objective& objective, const MethodOptions& options,
                         const std::vector<Placement>& starts) {
  DOPPLER_CHECK(!starts.empty(), "no placement to start from");
  DrawnAnnealing annealing(problem, objective, options);
  annealing.begin(starts);
  if (!annealing.hopeless()) {
    annealing.anneal_exactly(starts);
    annealing.anneal_by_passes();
  }
  if (annealing.empty()) return fit_in_memory(objective, {starts.front()}, options.budget);
  return annealing.choose();
}

}  // namespace doppler
