#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "doppler/graph/op_signature.h"
#include "doppler/jitter.h"
#include "doppler/results.h"
#include "doppler/timeline.h"

namespace doppler {

// How much the times of equal ops on one device vary within a run. A run in which everything was slow says nothing: no
// device waits longer for another because of it.
//
// Ops count by their time throughout, because a device takes the time of its long ones: a short op that is interrupted
// takes many times as long, and nobody notices.
class JitterEstimate {
 public:
  // Takes in one run.
  void add(const Graph& graph, const Timeline& timeline);

  // Returns what describes the runs best; none if there were no runs. Sigmas compare quantiles, which interruptions do
  // not change. A kind has its own if it differs by far, and the tail is what lies far beyond the sigmas: it keeps the
  // time that is lost there. Transfers have the sigma of ops: what they take differs more, but by what is in the
  // caches, and predictions that drew it were worse (docs/engine.md).
  Jitter fitted() const;
  // Says how well `jitter` describes the runs.
  CalibrationResult::Fit fit(const Jitter& jitter) const;

 private:
  struct Sample {
    std::uint32_t run;
    Seconds time;
  };
  // Equal ops on one device.
  struct Group {
    const std::string* kind;
    DeviceId device;
    Seconds usual;
    std::vector<std::uint32_t> runs;
    std::vector<double> residuals;  // logarithms of their times over what is usual for them and for their run
  };
  std::vector<Group> groups() const;

  std::map<std::pair<OpSignature, DeviceId>, std::vector<Sample>> samples_;
  std::uint32_t runs_ = 0;
};

}  // namespace doppler
