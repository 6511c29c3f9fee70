#pragma once

#include <memory>
#include <string>

#include "doppler/api/policies.h"

namespace CLI {
class App;
}  // namespace CLI

namespace doppler {

// Which learned policy `doppler` and `auto` use.
struct PolicyOptions {
  std::string checkpoint;  // a policy file, or the directory of a training; empty: the shipped one
  std::string train;       // a duration; empty: zero-shot
  std::uint32_t samples = 64;
  bool alone = false;  // no heuristic may win in its place
};
void add_policy_flags(CLI::App& verb, PolicyOptions& options);             // which policy
void add_answer_flags(CLI::App& verb, PolicyOptions& options);             // what the method `doppler` makes of it
std::unique_ptr<LearnedPolicy> load_policy(const PolicyOptions& options);  // throws InputError

}  // namespace doppler
