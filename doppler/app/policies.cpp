#include "doppler/app/policies.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/options.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/units.h"

namespace doppler {

void add_policy_flags(CLI::App& verb, PolicyOptions& options) {
  verb.add_option(
          "--checkpoint", options.checkpoint,
          "Learned policy for doppler and auto: a file or the directory of a training; default: the shipped one")
      ->type_name("PATH");
  verb.add_option("--samples", options.samples, "doppler: placements to draw beside the greedy one")
      ->check(whole_number())
      ->capture_default_str();
}

void add_answer_flags(CLI::App& verb, PolicyOptions& options) {
  verb.add_option("--train", options.train, "doppler: train on the graph for so long before answering")
      ->type_name("TIME");
  verb.add_flag("--alone", options.alone, "doppler: the policy's own answer, even if heft, etf or single does better");
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
  DopplerPolicyOptions policy;
  policy.samples = options.samples;
  policy.alone = options.alone;
  if (!options.train.empty()) policy.train = parse_duration(options.train, "--train");
  if (options.checkpoint.empty())
    return std::make_unique<DopplerPolicy>("the shipped policy", shipped_policy(), policy);
  return std::make_unique<DopplerPolicy>(options.checkpoint, read_policy(options.checkpoint), policy);
}

}  // namespace doppler
