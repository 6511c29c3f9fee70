#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doppler/calibrate/varied_placements.h"
#include "doppler/executor.h"
#include "doppler/results.h"

namespace doppler {

// Computes everything that follows from the samples. The measured times are steady_medians() of the runs.
Validity judge_validity(std::string graph, std::vector<Validity::Sample> samples);

struct ValidityOptions {
  unsigned repeat = 30, warmup = 1;  // rounds that count, and rounds before them
  // Whether the predictions are those of a machine that is calibrated in the same rounds, on other placements, instead
  // of the problem's own.
  bool calibrate = false;
  std::uint64_t seed = 0;
  std::function<void(unsigned round)> on_round = {};  // called after each, from 0 on
};

// Runs the placements in rounds and compares with what the simulator expects. An interrupted measurement counts as far
// as it went; there are no samples if fewer than two placements ran. Throws InputError if the graph cannot be
// calibrated with and `calibrate` asks for it.
Validity measure_validity(std::string graph, Executor& executor, std::vector<VariedPlacement> placements,
                          const ValidityOptions& options);

}  // namespace doppler
