#pragma once

// What is to be decided, and by which rules. docs/simulator.md states the rules completely.
//
//   doppler::Problem problem(graph, doppler::load_machine("p100x4"), {.discipline = doppler::Discipline::priority});
//   problem.devices(op);                                            // where it may go: never empty
//   doppler::Problem elsewhere = problem.on(doppler::load_machine("v100x8"));
//
// Limits. A Problem made from a graph and a machine goes by the Rules that it is given, links included; load_problem()
// takes the links from the machine unless it is told otherwise.

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "doppler/costs.h"
#include "doppler/placement.h"

namespace doppler::program {
struct RunnableProgram;
}
namespace doppler::model {
struct RunnableModel;
}

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
  std::uint64_t seed = 0;         // of Discipline::random, and of the draws of jitter

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

// One placement problem: a graph on a machine, what everything there costs, the rules, and where each op may go. It
// owns its parts by sharing them, and they never change, so that a Problem is cheap to copy and nothing has to outlive
// anything. What an op can run on, pins and colocation groups become one list of allowed devices per op.
class Problem {
 public:
  // Throws InputError if an op has no cost on any device or the rules contradict one another, InfeasibleError if pins
  // and groups leave an op no device.
  Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Machine> machine, const Rules& rules = {},
          std::vector<Pin> pins = {});
  Problem(Graph graph, Machine machine, const Rules& rules = {}, std::vector<Pin> pins = {})
      : Problem(std::make_shared<Graph>(std::move(graph)), std::make_shared<Machine>(std::move(machine)), rules,
                std::move(pins)) {}

  // The same problem by other rules, or on another machine. Costs are computed again only where the machine is another.
  Problem with(const Rules& rules) const;
  Problem on(Machine machine) const;
  // The same problem where no op may go to these devices. Throws InfeasibleError if that leaves an op no device.
  Problem without(std::span<const DeviceId> devices) const;
  // One outcome of times that vary: the same problem with the costs of the draw. Default priorities follow its times.
  Problem drawn(const JitterDraw& draw) const;
  // The same problem with the program that its graph was lowered from, which an executor can run.
  Problem with(std::shared_ptr<const program::RunnableProgram> program) const;
  // The same problem with the ONNX model whose nodes its ops are, which an executor can run.
  Problem with(std::shared_ptr<const model::RunnableModel> model) const;

  const Costs& costs() const { return *costs_; }
  const Graph& graph() const { return *graph_; }
  const Machine& machine() const { return *machine_; }
  const Rules& rules() const { return rules_; }
  const std::vector<Pin>& pins() const { return choices_->pins; }
  const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }
  // Returns null if the graph has costs only, and can be simulated or emulated but not computed.
  const program::RunnableProgram* program() const { return program_.get(); }
  // Returns null unless the graph is that of an ONNX model that was loaded to be run.
  const std::shared_ptr<const model::RunnableModel>& model() const { return model_; }
  OpId op_count() const { return graph_->op_count(); }
  DeviceId device_count() const { return machine_->device_count(); }

  // The devices where the op may go, at least one, ascending. Ops of one group have the same list.
  std::span<const DeviceId> devices(OpId op) const {
    const Choices& all = *choices_;
    return {all.device_lists.data() + all.list_begin[all.list_of_op[op]],
            all.device_lists.data() + all.list_begin[all.list_of_op[op] + 1]};
  }
  bool allows(OpId op, DeviceId device) const {
    return choices_->allowed[choices_->list_of_op[op] * device_count() + device];
  }
  bool pinned(OpId op) const { return !choices_->pinned.empty() && choices_->pinned[op]; }

  // Ops that must share a device, in id order: the op's whole colocation group, or just the op.
  std::span<const OpId> unit(OpId op) const;
  bool has_groups() const { return !choices_->group_begin.empty(); }
  // Says whether any device has a capacity, so that memory can be the reason for infeasibility.
  bool memory_limited() const { return choices_->memory_limited; }

 private:
  // Where each op may go.
  struct Choices {
    std::vector<Pin> pins;
    std::vector<bool> pinned;  // by op; empty: none is
    std::vector<char> closed;  // by device: no op may go there; empty: none is
    std::vector<OpId> self;    // unit() of an op without a group
    std::vector<OpId> group_members;
    std::vector<std::uint32_t> group_begin;
    std::vector<std::uint32_t> list_of_op;  // distinct lists are shared
    std::vector<std::uint32_t> list_begin;
    std::vector<DeviceId> device_lists;
    std::vector<char> allowed;
    bool memory_limited = false;
  };
  std::shared_ptr<const Choices> choose(std::vector<Pin> pins, std::vector<char> closed) const;
  static std::span<const OpId> unit(const Choices& choices, const Graph& graph, OpId op);

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Machine> machine_;
  std::shared_ptr<const Costs> costs_;
  Rules rules_;
  std::shared_ptr<const Choices> choices_;
  std::shared_ptr<const program::RunnableProgram> program_;
  std::shared_ptr<const model::RunnableModel> model_;
};

// Throws InternalError unless the placement is total, allowed and keeps groups together: stands between every
// method and the rest of the program.
void verify(const Problem& problem, const Placement& placement);

// Who made a placement of the problem, as far as the problem tells: this version, the graph by the name that the user
// has for it, the machine and the rules.
Provenance provenance_of(const Problem& problem, std::string graph);

// Ranks ops by descending b-level (mean costs), which is a topological order: the default priority.
std::vector<std::uint32_t> default_priority(const Costs& costs);
// Returns what `ordered` makes of any ranks: an op of which a producer comes later is taken as soon as it was. The
// result is a topological order.
std::vector<std::uint32_t> line_up(const Graph& graph, std::span<const std::uint32_t> rank);

}  // namespace doppler
