#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "doppler/graph/op_signature.h"
#include "doppler/timeline.h"

namespace doppler {

// How much the times of equal ops on one device vary within a run. A run in which everything was slow says nothing: no
// device waits longer for another because of it.
class JitterEstimate {
 public:
  // Takes in one run.
  void add(const Graph& graph, const Timeline& timeline);

  // Returns the sigma of a lognormal factor (Machine::jitter), 0 if there were no runs. Ops count by their time,
  // because a device takes the time of its long ones; quantiles are compared, which a few interruptions do not change.
  double sigma() const;

 private:
  struct Sample {
    std::uint32_t run;
    Seconds time;
  };
  std::map<std::pair<OpSignature, DeviceId>, std::vector<Sample>> samples_;
  std::uint32_t runs_ = 0;
};

}  // namespace doppler
