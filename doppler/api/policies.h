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

// The policy of a path, or the one that comes with the software if the path is empty, as a method uses it. Throws
// InputError.
std::unique_ptr<LearnedPolicy> load_policy(const std::string& path, const TrainedPolicyOptions& options);

}  // namespace doppler
