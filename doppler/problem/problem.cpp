#include "doppler/problem.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include "doppler/base/error.h"
#include "doppler/base/parse_enum.h"
#include "doppler/base/version.h"
#include "doppler/graph/levels.h"

namespace doppler {
namespace {

void check_rules(const Rules& rules, const Machine& machine) {
  if (rules.ties != Ties::published) return;
  if (rules.discipline != Discipline::fifo || rules.links != Links::free || rules.bulk_synchronous)
    throw InputError("ties: found 'published' with other rules; required discipline 'fifo', links 'free'");
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    if (machine.device(id).slots != 1)
      throw InputError(fmt::format("ties: found 'published' and {} slots on device '{}'; required one slot",
                                   machine.device(id).slots, machine.device(id).name));
}

}  // namespace

std::string_view to_string(Discipline discipline) {
  switch (discipline) {
    case Discipline::fifo:
      return "fifo";
    case Discipline::priority:
      return "priority";
    case Discipline::ordered:
      return "ordered";
    case Discipline::random:
      return "random";
  }
  throw InternalError("unknown discipline");
}

std::string_view to_string(Ties ties) { return ties == Ties::by_id ? "by_id" : "published"; }

Discipline parse_discipline(std::string_view text) {
  return parse_enum(text, "discipline",
                    std::array{Discipline::fifo, Discipline::priority, Discipline::ordered, Discipline::random});
}
Ties parse_ties(std::string_view text) { return parse_enum(text, "ties", std::array{Ties::by_id, Ties::published}); }

Problem::Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Machine> machine, const Rules& rules,
                 std::vector<Pin> pins)
    : graph_(std::move(graph)),
      machine_(std::move(machine)),
      costs_(std::make_shared<Costs>(graph_, machine_, rules.links == Links::shared)),
      rules_(rules) {
  check_rules(rules_, *machine_);
  choices_ = choose(std::move(pins), {});
}

Problem Problem::with(const Rules& rules) const {
  check_rules(rules, *machine_);
  Problem other = *this;
  other.rules_ = rules;
  return other;
}

Problem Problem::on(Machine machine) const {
  Problem other(graph_, std::make_shared<Machine>(std::move(machine)), rules_, pins());
  other.program_ = program_;
  other.model_ = model_;
  if (!choices_->closed.empty()) other.choices_ = other.choose(pins(), choices_->closed);
  return other;
}

Problem Problem::without(std::span<const DeviceId> devices) const {
  std::vector<char> closed = choices_->closed;
  closed.resize(device_count(), 0);
  for (const DeviceId device : devices) closed.at(device) = 1;
  Problem other = *this;
  other.choices_ = choose(pins(), std::move(closed));
  return other;
}

Problem Problem::drawn(const JitterDraw& draw) const {
  Problem other = *this;
  other.costs_ = std::make_shared<Costs>(costs_->drawn(draw));
  return other;
}

Problem Problem::with(std::shared_ptr<const program::RunnableProgram> program) const {
  Problem other = *this;
  other.program_ = std::move(program);
  return other;
}

Problem Problem::with(std::shared_ptr<const model::RunnableModel> model) const {
  Problem other = *this;
  other.model_ = std::move(model);
  return other;
}

std::shared_ptr<const Problem::Choices> Problem::choose(std::vector<Pin> pins, std::vector<char> closed) const {
  auto result = std::make_shared<Choices>();
  Choices& choices = *result;
  choices.pins = std::move(pins);
  choices.closed = std::move(closed);
  const OpId n = op_count();
  const DeviceId devices = device_count();
  for (DeviceId id = 0; id < devices; ++id) choices.memory_limited |= machine().device(id).memory > 0;

  if (graph().group_count() > 0) {  // members by group, a counting sort
    choices.group_begin.assign(graph().group_count() + 1, 0);
    for (OpId op = 0; op < n; ++op)
      if (graph().group(op) != Graph::kNoGroup) ++choices.group_begin[graph().group(op) + 1];
    std::partial_sum(choices.group_begin.begin(), choices.group_begin.end(), choices.group_begin.begin());
    choices.group_members.resize(choices.group_begin.back());
    std::vector<std::uint32_t> next(choices.group_begin.begin(), choices.group_begin.end() - 1);
    for (OpId op = 0; op < n; ++op)
      if (graph().group(op) != Graph::kNoGroup) choices.group_members[next[graph().group(op)]++] = op;
  }
  choices.self.resize(n);
  std::iota(choices.self.begin(), choices.self.end(), 0);

  std::map<OpId, DeviceId> pin_of_op;
  for (const auto& [op, device] : choices.pins) {
    if (op >= n || device >= devices)
      throw InputError(fmt::format("pin: op {} on device {}; required below {} and {}", op, device, n, devices));
    if (choices.pinned.empty()) choices.pinned.resize(n, false);
    choices.pinned[op] = true;
    if (const auto [entry, added] = pin_of_op.try_emplace(op, device); !added && entry->second != device)
      throw InfeasibleError(fmt::format("pin: op '{}' is pinned to devices {} and {}; required one", graph().name(op),
                                        entry->second, device));
  }

  // One list per unit; equal lists are stored once (on a uniform machine there is a single list).
  std::map<std::vector<char>, std::uint32_t> list_ids;
  choices.list_of_op.resize(n);
  choices.list_begin.push_back(0);
  std::vector<char> allowed(devices);
  for (OpId op = 0; op < n; ++op) {
    const std::span<const OpId> members = unit(choices, graph(), op);
    if (members.front() != op) {
      choices.list_of_op[op] = choices.list_of_op[members.front()];
      continue;
    }
    for (DeviceId id = 0; id < devices; ++id) allowed[id] = choices.closed.empty() || !choices.closed[id];
    for (const OpId member : members) {
      for (DeviceId id = 0; id < devices; ++id) allowed[id] = allowed[id] && costs_->can_run(member, id);
      if (const auto pin = pin_of_op.find(member); pin != pin_of_op.end())
        for (DeviceId id = 0; id < devices; ++id) allowed[id] = allowed[id] && id == pin->second;
    }
    const auto [entry, added] = list_ids.try_emplace(allowed, static_cast<std::uint32_t>(list_ids.size()));
    choices.list_of_op[op] = entry->second;
    if (!added) continue;
    for (DeviceId id = 0; id < devices; ++id)
      if (allowed[id]) choices.device_lists.push_back(id);
    if (choices.device_lists.size() == choices.list_begin.back())
      throw InfeasibleError(fmt::format("{}: no device {}can run op '{}' given pins and its colocation group of {}",
                                        graph().title(), choices.closed.empty() ? "" : "that is left ",
                                        graph().name(op), members.size()));
    choices.list_begin.push_back(static_cast<std::uint32_t>(choices.device_lists.size()));
    choices.allowed.insert(choices.allowed.end(), allowed.begin(), allowed.end());
  }
  return result;
}

std::span<const OpId> Problem::unit(const Choices& choices, const Graph& graph, OpId op) {
  const std::uint32_t group = graph.group(op);
  if (group == Graph::kNoGroup) return {&choices.self[op], 1};
  return {choices.group_members.data() + choices.group_begin[group],
          choices.group_members.data() + choices.group_begin[group + 1]};
}
std::span<const OpId> Problem::unit(OpId op) const { return unit(*choices_, *graph_, op); }

void verify(const Problem& problem, const Placement& placement) {
  const OpId n = problem.op_count();
  DOPPLER_CHECK(placement.device_of_op.size() == n, "{} devices for {} ops", placement.device_of_op.size(), n);
  for (OpId op = 0; op < n; ++op) {
    const DeviceId device = placement.device_of_op[op];
    DOPPLER_CHECK(device < problem.device_count() && problem.allows(op, device), "op '{}' is on device {}",
                  problem.graph().name(op), device);
    DOPPLER_CHECK(device == placement.device_of_op[problem.unit(op).front()], "op '{}' left its colocation group",
                  problem.graph().name(op));
  }
  if (!placement.priority.empty()) {
    DOPPLER_CHECK(placement.priority.size() == n, "{} priorities for {} ops", placement.priority.size(), n);
    std::vector<bool> seen(n, false);
    for (const std::uint32_t rank : placement.priority) {
      DOPPLER_CHECK(rank < n && !seen[rank], "rank {} repeats or is out of range", rank);
      seen[rank] = true;
    }
  }
  DOPPLER_CHECK(placement.cause_of_op.empty() || placement.cause_of_op.size() == n, "{} causes for {} ops",
                placement.cause_of_op.size(), n);
}

Provenance provenance_of(const Problem& problem, std::string graph) {
  Provenance made;
  made.version = version();
  made.graph = std::move(graph);
  made.machine = problem.machine().name();
  made.discipline = to_string(problem.rules().discipline);
  made.links = to_string(problem.rules().links);
  return made;
}

std::vector<std::uint32_t> default_priority(const Costs& costs) {
  const Levels level = levels(costs.graph(), costs.mean_times(), costs.mean_transfers());
  std::vector<OpId> order(costs.graph().topological_order().begin(), costs.graph().topological_order().end());
  // Stable: ops of equal b-level (zero-cost chains) stay in topological order.
  std::stable_sort(order.begin(), order.end(), [&](OpId a, OpId b) { return level.bottom[a] > level.bottom[b]; });
  return ranks_from_order(order);
}

std::vector<std::uint32_t> line_up(const Graph& graph, std::span<const std::uint32_t> rank) {
  std::vector<OpId> by_rank(rank.size()), order;
  for (OpId op = 0; op < rank.size(); ++op) by_rank[rank[op]] = op;
  std::vector<std::uint32_t> pending(rank.size());
  for (OpId op = 0; op < rank.size(); ++op) pending[op] = static_cast<std::uint32_t>(graph.inputs(op).size());
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> passed_over;  // ranks
  const auto take = [&](OpId op, std::uint32_t position) {
    order.push_back(op);
    for (const TensorId tensor : graph.outputs(op))
      for (const OpId consumer : graph.consumers(tensor))
        if (--pending[consumer] == 0 && rank[consumer] < position) passed_over.push(rank[consumer]);
  };
  for (std::uint32_t position = 0; position < by_rank.size();) {
    const OpId op = by_rank[position++];
    if (pending[op] == 0) take(op, position);
    while (!passed_over.empty()) {
      const OpId late = by_rank[passed_over.top()];
      passed_over.pop();
      take(late, position);
    }
  }
  return ranks_from_order(order);
}

}  // namespace doppler
