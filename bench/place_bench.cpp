// Seconds that the placement methods take on graphs of growing size, 8 devices. Quality is measured by
// bench/quality.

#include <benchmark/benchmark.h>

#include "bench/bench_graphs.h"
#include "bench/bench_main.h"
#include "doppler/method.h"

namespace doppler::bench {
namespace {

void run_method(benchmark::State& state, const char* name) {
  const Graph graph = layered_graph(static_cast<OpId>(state.range(0)));
  const Machine machine = load_machine("p100x8");
  const Problem problem(graph, machine);
  MethodOptions options;
  options.budget = Budget::unlimited();
  for (auto _ : state) {
    ExactObjective objective(problem);
    benchmark::DoNotOptimize(method_by_name(name).run(problem, objective, options).placement.device_of_op[0]);
  }
}

}  // namespace
}  // namespace doppler::bench

int main(int argc, char** argv) {
  using namespace doppler::bench;
  return run_benchmarks(argc, argv, [] {
    for (const char* name : {"heft", "etf", "cpop", "single"})
      benchmark::RegisterBenchmark(name, run_method, name)
          ->RangeMultiplier(10)
          ->Range(1'000, 100'000)
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1);
  });
}
