#include "doppler/api/policies.h"

#include <filesystem>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/learn/doppler/doppler_policy.h"

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

}  // namespace doppler
