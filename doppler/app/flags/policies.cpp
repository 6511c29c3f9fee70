#include "doppler/app/flags/policies.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/flags/options.h"
#include "doppler/method.h"
#include "doppler/units.h"

namespace doppler {

void add_policy_flags(CLI::App& verb, PolicyOptions& options) {
  verb.add_option(
          "--checkpoint", options.checkpoint,
          fmt::format(
              "Learned policy for {} and auto: a file or the directory of a training; default: the shipped one, "
              "which is of doppler",
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

TrainedPolicyOptions answer_options(const PolicyOptions& options) {
  const Seconds train = options.train.empty() ? 0 : parse_duration(options.train, "--train");
  return {.samples = options.samples, .alone = options.alone, .train = train};
}

std::unique_ptr<LearnedPolicy> load_policy(const PolicyOptions& options) {
  return load_policy(options.checkpoint, answer_options(options));
}

}  // namespace doppler
