#include "doppler/learn/policy_table.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/gdp/gdp_policy.h"
#include "doppler/learn/hsdag/hsdag_policy.h"
#include "doppler/learn/paper/paper.h"
#include "doppler/learn/placeto/placeto_policy.h"
#include "doppler/learn/rnn/rnn_policy.h"

namespace doppler {
namespace {

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

[[noreturn]] void refuse(std::string_view where, std::string_view description) {
  // Of an architecture that there is, only its own form is of interest.
  std::vector<std::string_view> names;
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == first_word(description))
      throw InputError(fmt::format("{}: found architecture '{}'; required {}", where, description, architecture.form));
    names.push_back(architecture.name);
  }
  throw InputError(fmt::format("{}: found architecture '{}'; required one of {} (docs/learning.md)", where, description,
                               fmt::join(names, ", ")));
}

}  // namespace

std::span<const Architecture> architectures() {
  static constexpr Architecture kArchitectures[] = {
      {"doppler", "gnn", "'gnn width W layers L messages episode|step', W a multiple of 32 up to 512, L up to 16",
       "gnn width 32 layers 2 messages episode", doppler_features, make_doppler_policy, widen_doppler},
      {"doppler", "joint", "'joint width W layers L ready K', W a multiple of 32 up to 512, L up to 16, K up to 1024",
       "joint width 32 layers 2 ready 16", doppler_features, make_doppler_policy, widen_doppler},
      {"doppler", "paper", "'paper'", "paper", doppler_features, make_paper_policy},
      {"hsdag", "hsdag",
       "'hsdag width W steps T [clusters metis] [groups published]', W a multiple of 32 up to 256, T up to 64",
       "hsdag width 32 steps 16", hsdag_features, make_hsdag_policy},
      {"hsdag", "hsdag-published", "'hsdag-published width W steps T', W a multiple of 32 up to 256, T up to 64",
       "hsdag-published width 32 steps 16", hsdag_features, make_hsdag_policy},
      {"hsdag+", "hsdag+", "'hsdag+ width W [clusters metis] [groups published]', W a multiple of 32 up to 256",
       "hsdag+ width 32", hsdag_plus_features, make_hsdag_policy},
      {"gdp", "gdp", "'gdp width W layers L segment S', W a multiple of 32 up to 256, L up to 8, S up to 1024",
       "gdp width 64 layers 2 segment 64", gdp_features, make_gdp_policy},
      {"rnn", "rnn", "'rnn width W groups G', W a multiple of 32 up to 256, G up to 256", "rnn width 64 groups 64",
       rnn_features, make_rnn_policy},
      {"placeto", "placeto",
       "'placeto width W rounds K messages episode|step', W a multiple of 32 up to 256, K up to 16",
       "placeto width 32 rounds 4 messages episode", placeto_features, make_placeto_policy},
  };
  return kArchitectures;
}

const Architecture& architecture_of(std::string_view where, std::string_view description) {
  for (const Architecture& architecture : architectures())
    if (architecture.name == first_word(description)) return architecture;
  refuse(where, description);
}

std::string_view usual_architecture(std::string_view policy) {
  check_policy_name("policy", policy);
  const auto all = architectures();
  return std::find_if(all.begin(), all.end(), [&](const Architecture& a) { return a.policy == policy; })->usual;
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : architectures())
    if (std::find(names.begin(), names.end(), architecture.policy) == names.end()) names.push_back(architecture.policy);
  return names;
}

void check_policy_name(std::string_view where, std::string_view name) {
  const std::vector<std::string_view> names = policy_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InputError(fmt::format("{}: found '{}'; required one of {}", where, name, fmt::join(names, ", ")));
}

std::unique_ptr<Policy> make_policy(std::string_view description, Rng rng) {
  const std::string text(description);
  auto policy = architecture_of("policy", text).make(text, rng);
  if (!policy || policy->architecture() != text) refuse("policy", text);
  return policy;
}

}  // namespace doppler
