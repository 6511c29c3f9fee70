#include "doppler/place/search/portfolio.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/place/learned.h"
#include "doppler/place/search/anneal.h"
#include "doppler/place/search/candidate.h"

namespace doppler {
namespace {

constexpr double kPolicyShare = 0.2;  // of the budget
constexpr std::size_t kStarts = 3;    // of the annealer
// The policy keeps a few numbers per op and device; beyond this many pairs that is too much memory for a guess.
constexpr std::uint64_t kLargestForPolicy = 20'000'000;

class Portfolio {
 public:
  Portfolio(const Problem& problem, Objective& objective, const MethodOptions& options)
      : problem_(problem), objective_(objective), options_(options) {}

  void consider_start() {
    if (options_.start && objective_.fits_in_memory(*options_.start)) consider("start", {.placement = *options_.start});
  }

  void ask_cheap_methods(bool promised) {
    for (const CheapMethod& method : cheap_methods()) {
      if (method.promised != promised || late_) continue;
      if (done() && !(promised && !optimal() && !options_.budget.interrupted())) continue;
      attempt(method.share, [&](const MethodOptions& part) {
        Proposal found = method.run(problem_, objective_, part);
        const std::string_view name = found_by(method, found.placement);
        consider(name, std::move(found));
      });
    }
  }

  void ask_policy() {
    const bool too_large = std::uint64_t{problem_.op_count()} * problem_.device_count() > kLargestForPolicy;
    if (done() || late_ || options_.policy == nullptr || too_large) return;
    attempt(kPolicyShare, [&](const MethodOptions& part) {
      consider(options_.policy->name(), options_.policy->zero_shot(problem_, objective_, part));
    });
  }

  void anneal() {
    if (candidates_.empty() && (late_ || why_not_.empty())) throw OutOfTime();
    if (candidates_.empty()) throw InfeasibleError(why_not_);
    std::vector<Placement> starts;
    for (const Candidate& candidate : candidates_)
      if (starts.size() < kStarts) starts.push_back(candidate.placement);
    if (done()) return;
    MethodOptions rest = options_;
    rest.budget = options_.budget.less(evaluations_);
    Proposal found;
    try {
      found = anneal_from(problem_, objective_, rest, starts);
    } catch (const OutOfTime&) {
      return;  // What the others found is kept.
    }
    evaluations_ += found.evaluations + 1;
    const Seconds value = objective_.value(found.placement);
    // It is no worse than its starts, which it may judge by more draws than the objective's. If it is one of them, or
    // no better, the method that found that is named.
    const auto same = std::find_if(candidates_.begin(), candidates_.end(),
                                   [&](const Candidate& candidate) { return candidate.value == value; });
    if (same != candidates_.end())
      std::rotate(candidates_.begin(), same, same + 1);
    else
      candidates_.insert(candidates_.begin(), {std::move(found.placement), value, "anneal"});
    if (options_.on_progress) options_.on_progress({"anneal", candidates_.front().value, evaluations_});
  }

  Proposal best() && {
    Candidate& best = candidates_.front();
    Proposal proposal;
    proposal.placement = std::move(best.placement);
    proposal.winner = best.winner;
    proposal.evaluations = evaluations_;
    return proposal;
  }

 private:
  bool optimal() const { return !candidates_.empty() && reaches(candidates_.front().value, options_.known_bound); }
  bool done() const { return !candidates_.empty() && (options_.budget.out_of_time() || optimal()); }

  template <typename Run>
  void attempt(double share, Run run) {
    MethodOptions part = options_;
    part.budget = options_.budget.share(share);
    part.on_progress = nullptr;
    try {
      run(part);
    } catch (const InfeasibleError& error) {
      if (why_not_.empty()) why_not_ = error.what();
    } catch (const OutOfTime&) {
      late_ = options_.budget.out_of_time();  // otherwise only its share is used up
    }
  }

  void consider(std::string_view name, Proposal proposal) {
    evaluations_ += proposal.evaluations + 1;
    const Seconds value = objective_.value(proposal.placement);
    candidates_.push_back({std::move(proposal.placement), value, std::string(name)});
    // Stable: among equals the earlier method is named.
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.value < b.value; });
    if (options_.on_progress) options_.on_progress({name, candidates_.front().value, evaluations_});
  }

  const Problem& problem_;
  Objective& objective_;
  const MethodOptions& options_;
  std::vector<Candidate> candidates_;  // by value
  std::uint64_t evaluations_ = 0;
  std::string why_not_;
  bool late_ = false;  // a method ran into the end of all time: the others would, too
};

}  // namespace

Proposal portfolio(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Portfolio all(problem, objective, options);
  all.consider_start();
  all.ask_cheap_methods(true);
  all.ask_policy();
  all.ask_cheap_methods(false);
  all.anneal();
  return std::move(all).best();
}

}  // namespace doppler
