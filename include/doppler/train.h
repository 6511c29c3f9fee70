#pragma once

// Training a policy that places graphs it has never seen in milliseconds, and yours better than any rule.
//
//   doppler::TrainingResult trained = doppler::train({{"model", problem}}, "model.policy", {.time = 30});
//   doppler::PlaceResult found = doppler::place(problem, {.method = "doppler", .policy = "model.policy"});
//
// Limits. Training starts from the shipped policy unless told otherwise, uses one core, and goes by exact makespans. A
// number of episodes gives the same policy every time; a time does not. 'doppler train' has more: checkpoints, held-out
// graphs, generated graphs, and real runs.

#include <stop_token>
#include <string>
#include <vector>

#include "doppler/problem.h"
#include "doppler/results.h"

namespace doppler {

struct NamedProblem {
  std::string name;
  Problem problem;
};

struct TrainOptions {
  Seconds time = 60;
  std::uint64_t episodes = 0;  // how many instead of how long; 0: go by the time
  std::uint64_t seed = 0;
  std::string start = {};     // a policy file to start from; empty: the shipped one
  std::stop_token stop = {};  // request_stop() of its source, from anywhere: what was learned is written
};

// Trains one policy on all problems, in turns, and writes it to `path`. The result has the best placement's makespan
// for each. Throws InputError if the place cannot be written or a problem is too large to train on.
TrainingResult train(const std::vector<NamedProblem>& problems, const std::string& path,
                     const TrainOptions& options = {});

}  // namespace doppler
