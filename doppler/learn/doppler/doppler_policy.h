#pragma once

#include <string>

#include "doppler/learn/train/policy_file.h"
#include "doppler/place/learned.h"

namespace doppler {

struct DopplerPolicyOptions {
  std::uint32_t samples = 64;  // beside the greedy placement
  bool alone = false;          // as LearnedPolicy::alone()
  Seconds train = 0;           // specialise on the problem for so long before answering
};

// A trained network as a method.
class DopplerPolicy final : public LearnedPolicy {
 public:
  // `where` starts error texts.
  DopplerPolicy(const std::string& where, PolicyFile file, const DopplerPolicyOptions& options);

  std::string_view name() const override { return "doppler"; }
  Proposal zero_shot(const Problem& problem, Objective& objective, const MethodOptions& options) const override;
  bool alone() const override { return options_.alone; }
  Proposal answer(const Problem& problem, Objective& objective, const MethodOptions& options) const override;

 private:
  std::string where_;
  PolicyFile file_;
  DopplerPolicyOptions options_;
};

// The policy that comes with the software: models/doppler.policy, in the program itself.
PolicyFile shipped_policy();

}  // namespace doppler
