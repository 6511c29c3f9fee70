#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "doppler/schedule.h"

// What pictures of schedules have in common. Internal to doppler/report.
namespace doppler {

// Returns the kinds by the time that they take, the longest first.
inline Schedule::Column kinds_by_time(const Schedule& schedule) {
  std::vector<double> time(schedule.kinds.size(), 0);
  for (std::size_t op = 0; op < schedule.ops.name.size(); ++op) time[schedule.ops.kind[op]] += schedule.ops.takes[op];
  Schedule::Column kinds(time.size());
  std::iota(kinds.begin(), kinds.end(), 0U);
  std::stable_sort(kinds.begin(), kinds.end(), [&](std::uint32_t a, std::uint32_t b) { return time[a] > time[b]; });
  return kinds;
}

// Returns whether each op is a step of the critical chain.
inline std::vector<bool> ops_of_chain(const Schedule& schedule) {
  std::vector<bool> on_chain(schedule.ops.name.size(), false);
  for (std::size_t i = 0; i < schedule.chain.id.size(); ++i)
    if (schedule.chain.transfer[i] == 0) on_chain[schedule.chain.id[i]] = true;
  return on_chain;
}

}  // namespace doppler
