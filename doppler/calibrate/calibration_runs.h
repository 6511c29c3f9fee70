#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "doppler/budget.h"
#include "doppler/calibrate/calibration.h"
#include "doppler/calibrate/rounds.h"
#include "doppler/load.h"

namespace doppler {

// Makes a box of `count` cores ("cpu") or GPUs ("gpu") with rates that only have to let a run begin. If no core is left
// for couriers, cores copy for themselves: two threads that want one core are slower than one that does both, and
// nobody can predict them.
Machine bare_machine(const std::string& type, DeviceId count);

// Makes programs of every kind of kernel in sizes of everyday blocks, for a machine that is to predict others.
std::vector<GraphFile> standard_graphs(DeviceId devices);

// Draws placements to calibrate with: every device computes and every link is used. They are others than those of
// varied_placements() with the same seed. Throws InputError if the graph cannot be calibrated with.
std::vector<TimedPlacement> calibration_placements(const Problem& problem, unsigned count, std::uint64_t seed);

// A graph that is calibrated with.
struct CalibrationWorkload {
  std::string name;
  std::shared_ptr<Executor> executor;
  std::vector<TimedPlacement> placements;
};

struct CalibrationRunOptions {
  unsigned repeat = 10;  // rounds that count, after one for buffers and caches
  std::uint64_t seed = 0;
  Budget budget = Budget::unlimited();  // when it is used up, what was measured has to do; one round counts in any case
  std::function<void(unsigned round, const CalibrationWorkload& workload)> on_round = {};  // called after each
};

// Runs all workloads in rounds and adds every run to the calibration. Returns false if it was interrupted; what was
// measured until then is kept.
bool run_calibration(std::vector<CalibrationWorkload>& workloads, const CalibrationRunOptions& options,
                     Calibration& calibration);

}  // namespace doppler
