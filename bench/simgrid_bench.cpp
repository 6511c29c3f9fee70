// SimGrid as an independent rival. Given the order of each device, both compute the same schedule: SimGrid as
// a DAG of execs and comms over fat pipes (a pure delay, like our free links), we with Discipline::ordered.
// The makespans must agree; the speeds are compared in the same run.

#include <cmath>
#include <map>

#include <benchmark/benchmark.h>
#include <simgrid/s4u.hpp>

#include "bench/bench_graphs.h"
#include "doppler/base/error.h"
#include "doppler/sim/simulator.h"

namespace doppler::bench {
namespace {

namespace sg = simgrid::s4u;

constexpr double kUnit = 1e10;       // of published cost per second: SimGrid wants sizes as integers, times near 100
constexpr double kPrecision = 1e-6;  // relative; SimGrid's own is absolute, set below
constexpr std::size_t kPlacements = 16;  // each simulation leaves memory behind in SimGrid's engine

class SimGridMachine {
 public:
  SimGridMachine(sg::Engine& engine, DeviceId devices) : engine_(engine) {
    sg::NetZone* zone = sg::create_full_zone("machine");
    for (DeviceId id = 0; id < devices; ++id)
      hosts_.push_back(zone->create_host("device" + std::to_string(id), kUnit)->seal());
    for (DeviceId src = 0; src < devices; ++src) {
      for (DeviceId dst = 0; dst < devices; ++dst) {
        if (src == dst) continue;
        sg::Link* link = zone->create_link("link" + std::to_string(src) + "-" + std::to_string(dst), kUnit);
        link->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE)->set_latency(0)->seal();
        zone->add_route(hosts_[src]->get_netpoint(), hosts_[dst]->get_netpoint(), nullptr, nullptr,
                        {sg::LinkInRoute(link)}, false);
      }
    }
    zone->seal();
  }

  Seconds makespan(const Problem& problem, const Placement& placement, const std::vector<OpId>& order) {
    const Graph& graph = problem.graph();
    std::vector<sg::ExecPtr> execs(graph.op_count());
    for (OpId op = 0; op < graph.op_count(); ++op)
      execs[op] = sg::Exec::init()
                      ->set_name("op")
                      ->set_flops_amount(problem.costs().op_time(op, 0))
                      ->set_host(hosts_[placement.device_of_op[op]]);
    std::vector<sg::CommPtr> comms;
    for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
      const OpId producer = graph.producer(tensor);
      const DeviceId src = placement.device_of_op[producer];
      std::map<DeviceId, sg::CommPtr> to;
      for (const OpId consumer : graph.consumers(tensor)) {
        const DeviceId dst = placement.device_of_op[consumer];
        if (dst == src) {
          execs[producer]->add_successor(execs[consumer]);
          continue;
        }
        sg::CommPtr& comm = to[dst];
        if (!comm) {
          comm = sg::Comm::sendto_init(hosts_[src], hosts_[dst]);
          comm->set_name("tensor");
          comm->set_payload_size(static_cast<std::uint64_t>(problem.costs().transfer_time(tensor, src, dst)));
          execs[producer]->add_successor(comm);
          comms.push_back(comm);
        }
        comm->add_successor(execs[consumer]);
      }
    }
    std::vector<sg::ExecPtr> last(hosts_.size());
    for (const OpId op : order) {  // one after the other on each device
      sg::ExecPtr& before = last[placement.device_of_op[op]];
      if (before && before->get_successors().end() ==
                        std::find(before->get_successors().begin(), before->get_successors().end(), execs[op]))
        before->add_successor(execs[op]);
      before = execs[op];
    }
    const double begin = sg::Engine::get_clock();
    for (const auto& exec : execs) exec->vetoable_start();
    for (const auto& comm : comms) comm->vetoable_start();
    engine_.run();
    return (sg::Engine::get_clock() - begin) * kUnit;
  }

 private:
  sg::Engine& engine_;
  std::vector<sg::Host*> hosts_;
};

struct Match {
  Match(const BenchGraph& input, SimGridMachine& rival_)
      : problem(input.graph, uniform_machine(input.devices), {.discipline = Discipline::ordered}),
        rival(rival_),
        placements(random_placements(input.graph, input.devices, kPlacements)) {
    priority = default_priority(problem.costs());
    order.resize(priority.size());
    for (OpId op = 0; op < priority.size(); ++op) order[priority[op]] = op;
    for (Placement& placement : placements) placement.priority = priority;
  }
  Problem problem;
  SimGridMachine& rival;
  std::vector<Placement> placements;
  std::vector<std::uint32_t> priority;
  std::vector<OpId> order;
};

void run_doppler(benchmark::State& state, Match& match) {
  Simulator simulator(match.problem);
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(simulator.makespan(match.placements[i++ % kPlacements]));
  state.SetItemsProcessed(state.iterations());
}

void run_simgrid(benchmark::State& state, Match& match) {
  Simulator simulator(match.problem);
  std::size_t i = 0;
  for (auto _ : state) {
    const Placement& placement = match.placements[i++ % kPlacements];
    const Seconds theirs = match.rival.makespan(match.problem, placement, match.order);
    const Seconds ours = simulator.makespan(placement);
    if (std::abs(theirs / ours - 1) > kPrecision) {
      state.SkipWithError(fmt::format("SimGrid finds {}, we find {}", theirs, ours).c_str());
      return;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

}  // namespace
}  // namespace doppler::bench

int main(int argc, char** argv) {
  using namespace doppler::bench;
  benchmark::Initialize(&argc, argv);
  sg::Engine engine(&argc, argv);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("surf/precision:1e-9");
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::vector<BenchGraph> graphs = small_graphs();
  SimGridMachine rival(engine, 8);  // SimGrid has one platform per process
  std::vector<std::unique_ptr<Match>> matches;
  for (const BenchGraph& graph : graphs) {
    if (graph.graph.cost_types().empty()) continue;  // needs explicit costs
    matches.push_back(std::make_unique<Match>(graph, rival));
    Match& match = *matches.back();
    benchmark::RegisterBenchmark((graph.name + "/ordered").c_str(), run_doppler, std::ref(match));
    benchmark::RegisterBenchmark((graph.name + "/rival_simgrid").c_str(), run_simgrid, std::ref(match))
        ->Iterations(kPlacements);
  }
  benchmark::RunSpecifiedBenchmarks();
}
