#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "doppler/machine/costs.h"
#include "doppler/problem/placement.h"

namespace doppler {

// Which ready op a free device takes.
enum class Discipline : std::uint8_t {
  fifo,      // earliest ready; the published semantics
  priority,  // lowest rank; work-conserving
  ordered,   // strictly by rank: the device waits for its next op
  random,    // a seeded coin
};
// Which of two ops that are ready at the same instant is first, for `fifo`.
enum class Ties : std::uint8_t {
  by_id,      // the smaller id
  published,  // the event order of the published simulator; only with `fifo`, `free` and one slot per device
};

// The rules of execution.
struct Rules {
  Discipline discipline = Discipline::fifo;
  Links links = Links::free;
  Ties ties = Ties::by_id;
  bool bulk_synchronous = false;  // a barrier after each level of the graph; contrast, not work-conserving
  double noise = 0;               // sigma of a lognormal factor with mean 1 on every op and transfer
  std::uint64_t seed = 0;         // of the noise and of Discipline::random

  // Whether a placement's priorities decide anything.
  bool read_priorities() const {
    return !bulk_synchronous && (discipline == Discipline::priority || discipline == Discipline::ordered);
  }

  bool operator==(const Rules&) const = default;
};
std::string_view to_string(Discipline discipline);
std::string_view to_string(Ties ties);
Discipline parse_discipline(std::string_view text);  // throws InputError
Ties parse_ties(std::string_view text);

using Pin = std::pair<OpId, DeviceId>;

// One placement problem: costs, rules, and where each op may go. Combines what an op can run on, pins and
// colocation groups into one list of allowed devices per op. `costs` must outlive it.
class Problem {
 public:
  // Throws InfeasibleError if pins and groups leave an op no device, InputError if the rules contradict one
  // another.
  Problem(const Costs& costs, Rules rules, const std::vector<Pin>& pins = {});

  const Costs& costs() const { return *costs_; }
  const Graph& graph() const { return costs_->graph(); }
  const Machine& machine() const { return costs_->machine(); }
  const Rules& rules() const { return rules_; }
  OpId op_count() const { return graph().op_count(); }
  DeviceId device_count() const { return machine().device_count(); }

  // Non-empty, ascending. Ops of one group have the same list.
  std::span<const DeviceId> devices(OpId op) const {
    return {device_lists_.data() + list_begin_[list_of_op_[op]],
            device_lists_.data() + list_begin_[list_of_op_[op] + 1]};
  }
  bool allows(OpId op, DeviceId device) const { return allowed_[list_of_op_[op] * device_count() + device]; }
  bool pinned(OpId op) const { return !pinned_.empty() && pinned_[op]; }

  // Ops that must share a device, in id order: the op's whole colocation group, or just the op.
  std::span<const OpId> unit(OpId op) const;
  bool has_groups() const { return !group_begin_.empty(); }
  // True if any device has a capacity, so that memory can be the reason for infeasibility.
  bool memory_limited() const { return memory_limited_; }

 private:
  const Costs* costs_;
  Rules rules_;
  std::vector<bool> pinned_;
  std::vector<OpId> self_;  // unit() of an op without a group
  std::vector<OpId> group_members_;
  std::vector<std::uint32_t> group_begin_;
  std::vector<std::uint32_t> list_of_op_;  // distinct lists are shared
  std::vector<std::uint32_t> list_begin_;
  std::vector<DeviceId> device_lists_;
  std::vector<char> allowed_;
  bool memory_limited_ = false;
};

// Throws InternalError unless the placement is total, allowed and keeps groups together: stands between every
// method and the rest of the program.
void verify(const Problem& problem, const Placement& placement);

// Rank by descending b-level (mean costs), a topological order: the default priority.
std::vector<std::uint32_t> default_priority(const Costs& costs);
// What `ordered` makes of any ranks: an op of which a producer comes later is taken as soon as it was. The result is a
// topological order.
std::vector<std::uint32_t> line_up(const Graph& graph, std::span<const std::uint32_t> rank);

}  // namespace doppler
