#include "doppler/api/policies.h"

#include <filesystem>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/policy_table.h"

namespace doppler {

PolicyFile read_policy(const std::string& path) {
  std::string file = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    file = path + "/policy";
    if (!std::filesystem::exists(file, ignored)) file = path + "/checkpoint";
    if (!std::filesystem::exists(file, ignored))
      throw InputError(
          fmt::format("{}: found no policy and no checkpoint; required the directory of a training", path));
  }
  return parse_policy(file, read_file(file));
}

std::unique_ptr<LearnedPolicy> load_policy(const std::string& path, const TrainedPolicyOptions& options) {
  if (path.empty()) return std::make_unique<TrainedPolicy>("the shipped policy", shipped_policy(), options);
  return std::make_unique<TrainedPolicy>(path, read_policy(path), options);
}

bool comes_with_policy(const Method& method) {
  return architecture_of("the shipped policy", shipped_policy().architecture).policy == method.name;
}

std::unique_ptr<LearnedPolicy> load_policy(const Method& method, const std::string& path, TrainedPolicyOptions options,
                                           std::uint64_t seed) {
  if (method.family != Method::Family::learned || (path.empty() && comes_with_policy(method)))
    return load_policy(path, options);
  if (path.empty()) {
    if (options.train <= 0)
      throw InputError(
          fmt::format("method {}: found no policy of it; required --train, to learn one for the graph, or "
                      "--checkpoint",
                      method.name));
    options.fresh = true;
    const auto policy = make_policy(usual_architecture(method.name), Rng(mix(seed, 0)));
    return std::make_unique<TrainedPolicy>("a fresh policy", file_of(*policy), options);
  }
  auto policy = load_policy(path, options);
  if (policy->name() != method.name)
    throw InputError(
        fmt::format("{}: found a policy of '{}'; required one of '{}'", path, policy->name(), method.name));
  return policy;
}

}  // namespace doppler
