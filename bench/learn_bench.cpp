// Milliseconds per training episode and per zero-shot answer. An episode is one sampled rollout with its simulation and
// its share of the update.

#include <benchmark/benchmark.h>

#include <chrono>
#include <map>

#include "bench/bench_graphs.h"
#include "doppler/learn/gnn.h"
#include "doppler/learn/learner.h"
#include "doppler/learn/paper.h"

namespace doppler::bench {
namespace {

enum class Kind { once, step, paper };

struct Bench {
  Bench(const Graph& graph, const Machine& machine)
      : costs(graph, machine), problem(costs, {}), task("bench", problem, std::make_unique<SimulatorOracle>(problem)) {}
  Costs costs;
  Problem problem;
  Task task;
};

double milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

std::unique_ptr<Network<float>> make_network(Kind kind) {
  if (kind == Kind::paper) return make_paper_network(Rng(1), executable_directory());
  return std::make_unique<Gnn<float>>(GnnShape{}, Rng(1));
}

void train(benchmark::State& state, const BenchGraph& graph, Kind kind) {
  const Machine machine = uniform_machine(graph.devices);
  Bench bench(graph.graph, machine);
  const auto network = make_network(kind);
  const LearnerOptions options;
  Learner learner(*network, options);
  learner.reinforce(bench.task, 1e-3, 0.01, Rng(0));
  std::uint64_t seed = 1;
  double total = 0, updates = 0;
  for (auto _ : state) {
    total += milliseconds([&] { learner.reinforce(bench.task, 1e-3, 0.01, Rng(seed++)); });
    ++updates;
  }
  state.counters["ms_per_episode"] = total / updates / static_cast<double>(options.batch);
}

}  // namespace
}  // namespace doppler::bench

int main(int argc, char** argv) {
  using namespace doppler::bench;
  benchmark::Initialize(&argc, argv);
  const auto graphs = small_graphs();
  for (const std::size_t i : {3, 5}) {
    benchmark::RegisterBenchmark(("train/default/" + graphs[i].name).c_str(), train, graphs[i], Kind::once)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("train/paper/" + graphs[i].name).c_str(), train, graphs[i], Kind::paper)->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
}
