#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doppler/calibrate/varied_placements.h"
#include "doppler/executor.h"

namespace doppler {

// How well the simulator predicts the runs of one graph.
struct Validity {
  // One placement, predicted and measured.
  struct Sample {
    std::string origin;  // as VariedPlacement has it
    Seconds simulated = 0, measured = 0;
    std::vector<Seconds> times;  // the runs that `measured` is made of
  };
  std::string graph;
  std::vector<Sample> samples;
  double pearson = 0, spearman = 0;
  double pearson_of_medians = 0, spearman_of_medians = 0;  // with plain medians of the runs as measured times
  double error = 0;                                        // the mean of |simulated / measured - 1|
  double bias = 0;                                         // the mean of simulated / measured - 1
  // What Spearman would be between these measured times and others like them; nothing if a placement ran only once.
  std::optional<double> repeatability = std::nullopt;
};

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
