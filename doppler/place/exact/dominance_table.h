#pragma once

#include <unordered_map>
#include <vector>

#include "doppler/ids.h"
#include "doppler/units.h"

namespace doppler {

// Partial schedules that a search has finished, to recognise later ones that cannot be better. Internal to
// `exact`.
class DominanceTable {
 public:
  struct Node {
    std::vector<OpId> scheduled;           // ascending
    std::vector<std::uint32_t> interface;  // what must be equal: ops that still matter and where, up to renaming
    std::vector<Seconds> times;            // their ends, and when slots are free: less is better
    Seconds now = 0, sum_of_starts = 0, makespan = 0;  // less is better
    OpId last_op = 0;
  };

  // True if a node seen before has the same ops scheduled and the same interface, and is nowhere worse.
  // Otherwise remembers the node, as long as there is room.
  bool dominated_or_insert(Node node);

 private:
  static bool dominates(const Node& a, const Node& b);

  std::unordered_map<std::uint64_t, std::vector<Node>> nodes_;  // by hash of what must be equal
  std::size_t bytes_ = 0;
};

}  // namespace doppler
