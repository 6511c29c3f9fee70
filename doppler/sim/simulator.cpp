#include "doppler/sim/simulator.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/sim/bulk_synchronous_loop.h"
#include "doppler/sim/event_loop.h"
#include "doppler/sim/list_loop.h"
#include "doppler/sim/memory.h"
#include "doppler/sim/published_loop.h"

namespace doppler {
namespace {

// Discipline::random is a priority that nobody chose.
std::vector<std::uint32_t> random_priority(OpId ops, std::uint64_t seed) {
  std::vector<double> keys(ops);
  Rng rng(seed);
  for (double& key : keys) key = rng.uniform();
  return ranks_of(keys);
}

std::vector<std::uint32_t> fallback_priority(const Problem& problem) {
  switch (problem.rules().discipline) {
    case Discipline::fifo:
      return {};
    case Discipline::random:
      return random_priority(problem.op_count(), problem.rules().seed);
    case Discipline::priority:
    case Discipline::ordered:
      return default_priority(problem.costs());
  }
  throw InternalError("unknown discipline");
}

}  // namespace

// The tables and the one loop that the rules call for.
struct Simulator::State {
  State(const Problem& problem, const JitterDraw& draw) : tables(problem, draw), fallback(fallback_priority(problem)) {
    make_loop();
  }

  // Also after a run that was given up half-way, which leaves a loop in no state to go on from.
  void make_loop() {
    const Rules& rules = tables.problem().rules();
    if (rules.bulk_synchronous) {
      bulk_synchronous.emplace(tables);
    } else if (rules.ties == Ties::published) {
      published.emplace(tables);
    } else if (are_delays(rules.links) &&
               (rules.discipline == Discipline::fifo || rules.discipline == Discipline::ordered)) {
      list.emplace(tables);
    } else {
      event.emplace(tables);
    }
  }

  template <typename Recorder>
  Seconds run(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority, Recorder& recorder) {
    const Discipline discipline = tables.problem().rules().discipline;
    if (list && discipline == Discipline::fifo) return list->run_fifo(device_of_op, recorder);
    const bool given = !priority.empty() && discipline != Discipline::random;
    const std::span<const std::uint32_t> rank = given ? priority : std::span<const std::uint32_t>(fallback);
    if (list) return list->run_ordered(device_of_op, rank, recorder);
    if (event) return event->run(device_of_op, rank, recorder);
    if (published) return published->run(device_of_op, recorder);
    return bulk_synchronous->run(device_of_op, recorder);
  }

  // The op whose end explains the start of `op`; kNone: nothing did.
  OpId reason(OpId op, std::span<const DeviceId> device_of_op) const {
    const ChainRecorder::Run& run = chain->run(op);
    if (run.before != ChainRecorder::kNone && run.start > run.ready) return run.before;
    const Problem& problem = tables.problem();
    OpId latest = ChainRecorder::kNone;
    Seconds arrival = 0;
    for (const TensorId tensor : problem.graph().inputs(op)) {
      const OpId producer = problem.graph().producer(tensor);
      const DeviceId from = device_of_op[producer], to = device_of_op[op];
      const Seconds at = chain->run(producer).end + (from == to ? 0 : problem.costs().transfer_time(tensor, from, to));
      if (latest != ChainRecorder::kNone && at <= arrival) continue;
      latest = producer;
      arrival = at;
    }
    return latest;
  }

  std::optional<ChainRecorder> chain;
  SimTables tables;
  std::vector<std::uint32_t> fallback;  // ranks where a placement has none
  std::optional<ListLoop> list;
  std::optional<EventLoop> event;
  std::optional<PublishedLoop> published;
  std::optional<BulkSynchronousLoop> bulk_synchronous;
};

Simulator::Simulator(const Problem& problem, const JitterDraw& draw) : state_(std::make_unique<State>(problem, draw)) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

Seconds Simulator::makespan(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  NoRecorder recorder;
  return state_->run(device_of_op, priority, recorder);
}

void Simulator::critical_chain(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority,
                               std::vector<OpId>& chain) {
  if (!state_->chain) state_->chain.emplace(state_->tables);
  ChainRecorder& recorder = *state_->chain;
  recorder.clear();
  state_->run(device_of_op, priority, recorder);
  OpId op = ChainRecorder::kNone;
  for (const OpId last : recorder.last())
    if (last != ChainRecorder::kNone && (op == ChainRecorder::kNone || recorder.run(last).end > recorder.run(op).end))
      op = last;
  chain.clear();
  for (; op != ChainRecorder::kNone; op = state_->reason(op, device_of_op)) chain.push_back(op);
}

bool Simulator::fits_in_memory(const Placement& placement, const Budget& budget) {
  return surely_fits(state_->tables.problem(), placement.device_of_op) || simulate(placement, budget).feasible();
}

Timeline Simulator::simulate(const Placement& placement, const Budget& budget) {
  const Problem& problem = state_->tables.problem();
  DOPPLER_CHECK(placement.device_of_op.size() == problem.op_count(), "{} devices for {} ops",
                placement.device_of_op.size(), problem.op_count());
  Timeline timeline;
  timeline.executions.reserve(problem.op_count());
  Watch watch(budget);
  TimelineRecorder recorder(timeline, problem.device_count(), watch);
  try {
    timeline.makespan = state_->run(placement.device_of_op, placement.priority, recorder);
  } catch (const OutOfTime&) {
    state_->make_loop();
    throw;
  }
  std::sort(timeline.executions.begin(), timeline.executions.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start, a.device, a.end, a.op) < std::tie(b.start, b.device, b.end, b.op);
  });
  std::sort(timeline.transfers.begin(), timeline.transfers.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start, a.tensor, a.dst) < std::tie(b.start, b.tensor, b.dst);
  });
  watch.step(problem.op_count());
  account_memory(problem, timeline);
  return timeline;
}

}  // namespace doppler
