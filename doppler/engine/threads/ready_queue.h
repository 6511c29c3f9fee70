#pragma once

#include <optional>
#include <span>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/problem/problem.h"
#include "doppler/sim/rank_set.h"

namespace doppler {

// The ready ops of one device, in the order of the discipline. One thread uses it. Internal to doppler/engine.
class ReadyQueue {
 public:
  // `ops` are those of the device; `rank` is by op, as Placement::priority, and only some disciplines read it.
  void prepare(Discipline discipline, std::span<const OpId> ops, std::span<const std::uint32_t> rank, const Rng& rng);

  void push(OpId op);
  // What the device should run now; nothing if it has to wait.
  std::optional<OpId> pop();
  // An op that pop() gave and that could not run.
  void put_back(OpId op);

 private:
  Discipline discipline_ = Discipline::fifo;
  Rng rng_{0};
  std::vector<OpId> by_rank_;          // the device's ops; priority and ordered
  std::vector<std::uint32_t> place_;   // by op: its index in by_rank_
  RankSet ranks_{0};                   // priority: the ready ones
  std::vector<char> is_ready_;         // ordered, by place
  std::size_t next_ = 0;               // ordered: the place of the op to run next
  std::vector<OpId> waiting_;          // fifo: a ring; random: a bag
  std::size_t first_ = 0, count_ = 0;  // fifo
};

}  // namespace doppler
