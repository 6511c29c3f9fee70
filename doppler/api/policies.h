#pragma once

#include <memory>
#include <string>

#include "doppler/learn/train/policy_file.h"
#include "doppler/learn/train/trained_policy.h"

namespace doppler {

// The policy in a file, or the one that a training directory offers: the one that did best on held-out graphs, else its
// last checkpoint.
// Throws InputError.
PolicyFile read_policy(const std::string& path);

// Says whether a trained policy of a learned method comes with the software.
bool comes_with_policy(const Method& method);

// Loads the policy of a path, or the one that comes with the software if the path is empty, as `auto` uses it. Throws
// InputError.
std::unique_ptr<LearnedPolicy> load_policy(const std::string& path, const TrainedPolicyOptions& options);
// The same for a learned method, whose policy it must be. Without a path, a method that comes with no policy begins
// with a fresh one, which must then be trained: options.train.
std::unique_ptr<LearnedPolicy> load_policy(const Method& method, const std::string& path, TrainedPolicyOptions options,
                                           std::uint64_t seed);

}  // namespace doppler
