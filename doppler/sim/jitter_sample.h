#pragma once

#include <vector>

#include "doppler/sim/simulator.h"

namespace doppler {

// Outcomes of times that vary: simulators of one problem, each with its own draw of the jitter. The draws follow from
// the rules' seed and the stream alone, so that two placements meet the same ones. Internal to doppler/sim.
class JitterSample {
 public:
  JitterSample(const Problem& problem, Jitter jitter, std::size_t draws, std::uint64_t stream);

  std::size_t draws() const { return draws_; }
  const Jitter& jitter() const { return jitter_; }
  std::uint64_t stream() const { return stream_; }
  // Calls visit(simulator) for every draw in turn.
  template <typename Visit>
  void for_each(Visit visit) {
    for (Simulator& simulator : simulators_) visit(simulator);
    if (!simulators_.empty()) return;
    for (std::size_t draw = 0; draw < draws_; ++draw) {
      Simulator simulator = make(draw);
      visit(simulator);
    }
  }
  // Whether the tables of all draws are kept; otherwise they are made again for each value.
  static bool keeps_tables(const Problem& problem, std::size_t draws);
  Simulator& simulator(std::size_t draw) { return simulators_[draw]; }  // if they are kept

 private:
  Simulator make(std::size_t draw) const;

  Problem problem_;
  Jitter jitter_;
  std::size_t draws_;
  std::uint64_t stream_;
  std::vector<Simulator> simulators_;  // one per draw, or none where the tables of all would be too large
};

}  // namespace doppler
