#pragma once

#include <string>

#include "doppler/learn/train/policy_file.h"
#include "doppler/place/learned.h"

namespace doppler {

struct TrainedPolicyOptions {
  std::uint32_t samples = 64;  // Samples beside the greedy placement.
  bool alone = false;          // What LearnedPolicy::alone() says.
  Seconds train = 0;           // How long the policy is specialised on the problem before it answers.
  bool fresh = false;          // The policy knows nothing yet.
};

// A policy from a file as a method, whatever policy it is.
class TrainedPolicy final : public LearnedPolicy {
 public:
  // `where` starts error texts. Throws InputError if the file does not fit its architecture.
  TrainedPolicy(const std::string& where, PolicyFile file, const TrainedPolicyOptions& options);

  std::string_view name() const override { return name_; }
  void check(const Problem& problem) const override;
  Proposal zero_shot(const Problem& problem, Objective& objective, const MethodOptions& options) const override;
  Seconds training_time() const override { return options_.train; }
  bool alone() const override { return options_.alone; }
  Proposal answer(const Problem& problem, Objective& objective, const MethodOptions& options) const override;

 private:
  std::string where_;
  PolicyFile file_;
  TrainedPolicyOptions options_;
  std::string name_;
};

}  // namespace doppler
