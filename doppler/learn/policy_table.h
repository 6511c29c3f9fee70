#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/learn/policy.h"

namespace doppler {

// One architecture of a policy. Its description, such as "gnn width 32 layers 2 messages episode", is what a policy
// file holds to make it again.
struct Architecture {
  std::string_view policy;  // The name of the policy, which is that of its method too.
  std::string_view name;    // The first word of every description.
  std::string_view form;    // What a description looks like, for error texts.
  std::string_view usual;   // The description of one with the usual sizes.
  // The names of what it sees, in order. A file of other features is refused, because a policy that reads its inputs in
  // another order would answer nonsense.
  std::vector<std::string> (*features)();
  // Null if the description is not of its form. May throw InputError where it needs something that is not there.
  std::unique_ptr<Policy> (*make)(const std::string& description, Rng rng);
  // Adds parameters for features that a file of fewer (`known`) did not know yet, such that the policy answers as
  // before. False if it cannot; null if it never can.
  bool (*widen)(const std::string& description, const std::vector<std::string>& known,
                std::vector<float>& parameters) = nullptr;
};

// Every architecture of every policy, the usual one of a policy first. The one place to add yours.
std::span<const Architecture> architectures();
// Throws InputError listing the descriptions that there are; `where` starts the text.
const Architecture& architecture_of(std::string_view where, std::string_view description);

// Returns the description of the usual architecture of a policy. Throws InputError if there is no such policy.
std::string_view usual_architecture(std::string_view policy);

// The names of the policies, each once.
std::vector<std::string_view> policy_names();
// Throws InputError listing the names unless it is one; `where` starts the text.
void check_policy_name(std::string_view where, std::string_view name);

// A policy with fresh parameters. Throws InputError for a description that no architecture makes.
std::unique_ptr<Policy> make_policy(std::string_view description, Rng rng);

}  // namespace doppler
