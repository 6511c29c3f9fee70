#pragma once

#include <optional>
#include <span>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/problem.h"
#include "doppler/sim/rank_set.h"

namespace doppler {

// The ready ops of one device, in the order of the discipline. One thread uses it. Internal to doppler/engine.
class ReadyQueue {
 public:
  // `ops` are those of the device; `rank` is by op, as Placement::priority, and only some disciplines read it.
  void prepare(Discipline discipline, std::span<const OpId> ops, std::span<const std::uint32_t> rank, const Rng& rng);

  void push(OpId op);
  // Returns what the device should run now, or nothing if it has to wait.
  std::optional<OpId> pop();
  // Takes back an op that pop() gave and that could not run.
  void put_back(OpId op);

 private:
  Discipline discipline_ = Discipline::fifo;
  Rng rng_{0};
  std::vector<OpId> by_rank_;          // the device's ops, for priority and ordered
  std::vector<std::uint32_t> place_;   // its index in by_rank_, by op
  RankSet ranks_{0};                   // the ready ones, for priority
  std::vector<char> is_ready_;         // by place, for ordered
  std::size_t next_ = 0;               // the place of the op to run next, for ordered
  std::vector<OpId> waiting_;          // a ring for fifo, a bag for random
  std::size_t first_ = 0, count_ = 0;  // the part of the ring in use, for fifo
};

}  // namespace doppler
