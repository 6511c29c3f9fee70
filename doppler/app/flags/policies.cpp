#include "doppler/app/flags/policies.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
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
                learned_methods() + ": the policy's own answer, even if heft, etf, enumerative or single does better");
}

PlaceOptions place_options(const Options& options, const PolicyOptions& policy) {
  PlaceOptions result;
  result.evaluations = options.evaluations;
  result.time = parse_duration(options.time, "--time");
  result.cpu_time = options.cpu_time;
  result.seed = options.seed;
  result.threads = options.threads;
  result.published = options.published;
  result.policy = policy.checkpoint;
  if (!policy.train.empty()) result.train = parse_duration(policy.train, "--train");
  result.samples = policy.samples;
  result.alone = policy.alone;
  result.stop = interruption();
  return result;
}

}  // namespace doppler
