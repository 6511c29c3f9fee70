#include "doppler/place/exact/dominance_table.h"

#include <algorithm>

#include "doppler/base/rng.h"

namespace doppler {
namespace {
constexpr std::size_t kMostBytes = std::size_t{512} << 20;
}

// At equal `now` the tie rule of the tree lets other ops follow after another last op, so it must be the
// same.
bool DominanceTable::dominates(const Node& a, const Node& b) {
  if (a.now > b.now || (a.now == b.now && a.last_op != b.last_op)) return false;
  if (a.sum_of_starts > b.sum_of_starts || a.makespan > b.makespan) return false;
  return std::equal(a.times.begin(), a.times.end(), b.times.begin(), std::less_equal<>());
}

bool DominanceTable::dominated_or_insert(Node node) {
  std::uint64_t hash = 0;
  for (const OpId op : node.scheduled) hash = mix(hash, op);
  for (const std::uint32_t value : node.interface) hash = mix(hash, value);
  auto& bucket = nodes_[hash];
  for (const Node& seen : bucket)
    if (seen.scheduled == node.scheduled && seen.interface == node.interface && dominates(seen, node)) return true;
  const std::size_t size = sizeof(Node) + 4 * (node.scheduled.size() + node.interface.size()) + 8 * node.times.size();
  if (bytes_ + size <= kMostBytes) {
    bytes_ += size;
    bucket.push_back(std::move(node));
  }
  return false;
}

}  // namespace doppler
