#include "doppler/app/policies.h"

#include <filesystem>

#include "doppler/app/options.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/train/trained_policy.h"
#include "doppler/method.h"
#include "doppler/units.h"

namespace doppler {

void add_policy_flags(CLI::App& verb, PolicyOptions& options) {
  verb.add_option(
          "--checkpoint", options.checkpoint,
          fmt::format("Learned policy for {} and auto: a file or the directory of a training; default: the shipped one",
                      learned_methods()))
      ->type_name("PATH");
  verb.add_option("--samples", options.samples, learned_methods() + ": placements to draw beside the greedy one")
      ->check(whole_number())
      ->capture_default_str();
}

void add_answer_flags(CLI::App& verb, PolicyOptions& options) {
  verb.add_option("--train", options.train, learned_methods() + ": train on the graph for so long before answering")
      ->type_name("TIME");
  verb.add_flag("--alone", options.alone,
                learned_methods() + ": the policy's own answer, even if heft, etf or single does better");
}

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

std::unique_ptr<LearnedPolicy> load_policy(const PolicyOptions& options) {
  TrainedPolicyOptions policy;
  policy.samples = options.samples;
  policy.alone = options.alone;
  if (!options.train.empty()) policy.train = parse_duration(options.train, "--train");
  if (options.checkpoint.empty())
    return std::make_unique<TrainedPolicy>("the shipped policy", shipped_policy(), policy);
  return std::make_unique<TrainedPolicy>(options.checkpoint, read_policy(options.checkpoint), policy);
}

}  // namespace doppler
