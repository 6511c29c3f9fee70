// Makespans per second of the simulator, beside a plain loop with one binary heap as the rival, and how time
// and memory grow with the graph.

#include <malloc.h>
#include <queue>

#include <benchmark/benchmark.h>

#include "bench/bench_graphs.h"
#include "bench/bench_main.h"
#include "doppler/costs.h"
#include "doppler/sim/simulator.h"

namespace doppler::bench {
namespace {

constexpr std::size_t kPlacements = 64;

// Machines for graphs with explicit costs and with flops alike.
Machine machine_for(const Graph& graph, DeviceId devices) {
  if (!graph.cost_types().empty()) return uniform_machine(devices);
  Device device;
  device.type = "gpu";
  device.rates = {{"*", "*", 1e13}};
  std::vector<Device> list(devices, device);
  for (std::size_t i = 0; i < list.size(); ++i) list[i].name = "gpu" + std::to_string(i);
  Link link;
  link.bytes_per_second = 1e10;
  return Machine("bench", list, std::vector<Link>(devices * devices, link));
}

// The rival: what one writes in ten minutes. Same semantics as fifo with ties by id; uniform machines only.
class PlainLoop {
 public:
  explicit PlainLoop(const Costs& costs) : costs_(costs), graph_(costs.graph()) {}

  Seconds makespan(const std::vector<DeviceId>& device_of_op) {
    ready_.assign(graph_.op_count(), 0.0);
    pending_.resize(graph_.op_count());
    free_at_.assign(costs_.machine().device_count(), 0.0);
    for (OpId op = 0; op < graph_.op_count(); ++op) {
      pending_[op] = static_cast<std::uint32_t>(graph_.inputs(op).size());
      if (pending_[op] == 0) queue_.emplace(0.0, op);
    }
    Seconds makespan = 0;
    while (!queue_.empty()) {
      const auto [ready, op] = queue_.top();
      queue_.pop();
      const DeviceId device = device_of_op[op];
      const Seconds end = std::max(ready, free_at_[device]) + costs_.op_time(op, device);
      free_at_[device] = end;
      makespan = std::max(makespan, end);
      for (const TensorId tensor : graph_.outputs(op)) {
        for (const OpId consumer : graph_.consumers(tensor)) {
          ready_[consumer] =
              std::max(ready_[consumer], end + costs_.transfer_time(tensor, device, device_of_op[consumer]));
          if (--pending_[consumer] == 0) queue_.emplace(ready_[consumer], consumer);
        }
      }
    }
    return makespan;
  }

 private:
  const Costs& costs_;
  const Graph& graph_;
  std::vector<Seconds> ready_, free_at_;
  std::vector<std::uint32_t> pending_;
  std::priority_queue<std::pair<Seconds, OpId>, std::vector<std::pair<Seconds, OpId>>, std::greater<>> queue_;
};

struct Mode {
  const char* name;
  Rules rules;
};
std::vector<Mode> modes() {
  std::vector<Mode> list = {{"fifo", {}}, {"published_ties", {}}, {"priority", {}}, {"ordered", {}}, {"channels", {}}};
  list[1].rules.ties = Ties::published;
  list[2].rules.discipline = Discipline::priority;
  list[3].rules.discipline = Discipline::ordered;
  list[4].rules.links = Links::channels;
  return list;
}

void run_simulator(benchmark::State& state, const BenchGraph& input, const Rules& rules) {
  const Machine machine = machine_for(input.graph, input.devices);
  const Problem problem(input.graph, machine, rules);
  Simulator simulator(problem);
  const auto placements = random_placements(input.graph, input.devices, kPlacements);
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(simulator.makespan(placements[i++ % kPlacements]));
  state.SetItemsProcessed(state.iterations());
}

void run_plain_loop(benchmark::State& state, const BenchGraph& input) {
  const Machine machine = machine_for(input.graph, input.devices);
  const Costs costs(input.graph, machine);
  const Problem problem(input.graph, machine);
  const auto placements = random_placements(input.graph, input.devices, kPlacements);
  PlainLoop rival(costs);
  if (rival.makespan(placements[0].device_of_op) != Simulator(problem).makespan(placements[0]))
    return state.SkipWithError("the rival computes something else");
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(rival.makespan(placements[i++ % kPlacements].device_of_op));
  state.SetItemsProcessed(state.iterations());
}

std::size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Graph, costs and simulator together; nanoseconds and bytes per op and edge should stay flat.
void run_growth(benchmark::State& state) {
  const std::size_t before = bytes_in_use();
  const Graph graph = layered_graph(static_cast<OpId>(state.range(0)));
  const Machine machine = machine_for(graph, 8);
  const Problem problem(graph, machine);
  Simulator simulator(problem);
  const double size = static_cast<double>(graph.op_count() + graph.edge_count());
  state.counters["bytes_per_op_and_edge"] = static_cast<double>(bytes_in_use() - before) / size;
  const auto placements = random_placements(graph, 8, 1);
  for (auto _ : state) benchmark::DoNotOptimize(simulator.makespan(placements[0]));
  state.counters["ns_per_op_and_edge"] = benchmark::Counter(size * 1e-9 * static_cast<double>(state.iterations()),
                                                            benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace
}  // namespace doppler::bench

int main(int argc, char** argv) {
  using namespace doppler::bench;
  return run_benchmarks(argc, argv, [] {
    static const std::vector<BenchGraph> graphs = small_graphs();
    for (const BenchGraph& graph : graphs) {
      for (const Mode& mode : modes())
        benchmark::RegisterBenchmark((graph.name + "/" + mode.name).c_str(), run_simulator, std::cref(graph),
                                     mode.rules);
      benchmark::RegisterBenchmark((graph.name + "/rival_plain_loop").c_str(), run_plain_loop, std::cref(graph));
    }
    benchmark::RegisterBenchmark("growth", run_growth)
        ->RangeMultiplier(10)
        ->Range(1'000, 1'000'000)
        ->Unit(benchmark::kMillisecond);
  });
}
