#pragma once

#include <map>
#include <string>
#include <vector>

#include "doppler/calibrate/interference.h"
#include "doppler/calibrate/jitter.h"
#include "doppler/problem.h"
#include "doppler/results.h"
#include "doppler/timeline.h"

namespace doppler {

// The latency and the seconds per byte, both not negative, that minimise the squared relative error.
struct LinkFit {
  Seconds latency = 0, per_byte = 0;
};
LinkFit fit_link(const std::vector<std::pair<Bytes, Seconds>>& samples);

// What timelines of real runs say about a machine. Feed it runs of several placements; it keeps every op's and every
// transfer's time and makes a machine of them whose simulator predicts such runs.
//
// Times come from runs and not from kernels in a loop, so they contain what a loop does not: caches that others have
// filled, devices that share memory bandwidth, the scheduler itself. In the end the machine is stretched until its
// predictions of these runs are right in the median: what no op and no transfer accounts for is in there too.
// Predictions are expected makespans (ExpectedObjective): the runs also say how much times vary.
class Calibration {
 public:
  // Emulated devices follow the model of `base` already; only what the emulation adds to it is looked for.
  Calibration(const Machine& base, bool emulated)
      : base_(emulated ? base.without_emulation() : base), emulated_(emulated), links_(base.link_model()) {}

  // Throws InputError if the graph brings times of its own: nothing that is measured changes them.
  static void check(const Graph& graph);
  // Takes in one run of a graph that passes the check.
  void add(const Problem& problem, const Placement& placement, const Timeline& timeline);

  // Makes the machine. Devices that compute get every measured op by kind, dtype and size (Device::measured), rates by
  // kind and a bandwidth for ops that were not measured, and the latency and bandwidth of the links. Emulated ones are
  // those of `base` with what an op and a transfer take in addition, and the machine says how much that is (Emulation).
  // Throws InputError if there were no ops, or no transfers although there are several devices.
  Machine machine(const std::string& name) const;

  // What was measured of every kind of op.
  std::vector<CalibrationResult::Kind> kinds() const;
  std::size_t transfers() const { return transfers_.size(); }
  bool empty() const { return runs_.empty(); }
  // The share of the devices' time in which other threads or processes had their cores.
  double others() const { return all_ > 0 ? others_ / all_ : 0; }
  // These are the stretch and the jitter of machine().
  double stretch() const;
  Jitter jitter() const { return jitter_.fitted(); }
  // How well that jitter describes the runs.
  CalibrationResult::Fit fit() const { return jitter_.fit(jitter_.fitted()); }

 private:
  struct Move {
    Bytes bytes;
    Seconds time;  // until the op that waited for it could have begun
  };
  struct Excess {
    Seconds op = 0;  // of emulated devices
    LinkFit link;
    Jitter jitter;
  };
  // The runs of one placement.
  struct Runs {
    Problem problem;
    Placement placement;
    std::vector<Seconds> makespans;
  };
  Excess found_excess() const;
  Machine stretched(const std::string& name, const Excess& excess, double stretch) const;
  double predicted_over_measured(const Machine& machine) const;
  double fitted_stretch(const Excess& excess) const;
  void add_transfers(const Problem& problem, const Timeline& timeline);
  void describe_ops(Device& device, double stretch) const;
  LinkFit fitted_link() const;

  Machine base_;
  bool emulated_;
  Links links_;  // the rule by which the runs went
  std::map<OpSignature, std::vector<Seconds>> ops_;
  std::vector<Seconds> excess_;  // measured minus modelled time, per op of emulated devices
  std::vector<Move> transfers_;
  Interference interference_;
  JitterEstimate jitter_;
  std::vector<Runs> runs_;
  Seconds others_ = 0, all_ = 0;  // of all devices and runs
};

}  // namespace doppler
