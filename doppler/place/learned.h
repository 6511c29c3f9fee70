#pragma once

#include "doppler/method.h"

namespace doppler {

// A policy that was learned before, whichever it is. doppler/learn implements it: methods know only this much of
// learning.
class LearnedPolicy {
 public:
  virtual ~LearnedPolicy() = default;
  // The name of the policy, which is that of its method.
  virtual std::string_view name() const = 0;
  // Throws InputError if the problem is too large for it, or for the training that the user asked for.
  virtual void check(const Problem&) const {}
  // Its answer as it stands, which takes milliseconds.
  virtual Proposal zero_shot(const Problem& problem, Objective& objective, const MethodOptions& options) const = 0;
  // Its answer after as much training on this problem as the user asked for, if any.
  virtual Proposal answer(const Problem& problem, Objective& objective, const MethodOptions& options) const = 0;
  // How long that training takes, which comes on top of the method's budget.
  virtual Seconds training_time() const { return 0; }
  // True if its answer is wanted even where a heuristic does better, to see what was learned.
  virtual bool alone() const { return false; }
};

// The method of a learned policy: the best of its answer and of the quick heuristics, whichever wins is named. Throws
// InputError without a policy.
Proposal learned(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
