#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "doppler/graph/graph.h"
#include "doppler/sim/timeline.h"

namespace doppler {

// How much the times of equal ops on one device vary within a run. A run in which everything was slow says nothing: no
// device waits longer for another because of it.
class Jitter {
 public:
  void add(const Graph& graph, const Timeline& timeline);  // one run

  // The sigma of a lognormal factor (Machine::jitter), 0 if there were no runs. Ops count by their time, because a device
  // takes the time of its long ones; from quantiles, which a few interruptions do not change.
  double sigma() const;

 private:
  struct Sample {
    std::uint32_t run;
    Seconds time;
  };
  // kind, dtype, flops, read, written, device
  using Sort = std::tuple<std::string, std::string, Flops, Bytes, Bytes, DeviceId>;
  std::map<Sort, std::vector<Sample>> samples_;
  std::uint32_t runs_ = 0;
};

}  // namespace doppler
