// What the engine costs per op: graphs of 100 000 ops that do nothing, on two workers, beside two runtimes that people
// use. StarPU honours the placement (a task names its worker); oneTBB's flow graph does not, it steals.
//
//   build/release/bin/engine_bench
//
// Items per second are ops per second. `ours_first/…` includes laying out the placement. StarPU's tasks are used up by
// a run, so it is measured twice: submission and execution, and execution alone (submitted while paused).
#include <memory>

#include "bench/bench_main.h"
#include "doppler/base/rng.h"
#include "doppler/engine/threads/threads_executor.h"

#ifdef DOPPLER_WITH_STARPU
#include <starpu.h>
#endif
#ifdef DOPPLER_WITH_TBB
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#endif

namespace doppler::bench {
namespace {

constexpr OpId kOps = 100'000;
constexpr DeviceId kWorkers = 2;

// Layers of 100 ops, each of which reads two of the layer before.
Graph layered() {
  constexpr OpId kWidth = 100;
  Rng rng(1);
  GraphBuilder builder("layered");
  for (OpId op = 0; op < kOps; ++op) {
    builder.add_op({.explicit_times = {{"*", 1}}});
    builder.add_tensor(op, 0, 0.0);
    if (op < kWidth) continue;
    const OpId layer = op / kWidth * kWidth - kWidth, first = rng.below(kWidth);
    builder.add_consumer(layer + first, op);
    builder.add_consumer(layer + (first + 1 + rng.below(kWidth - 1)) % kWidth, op);
  }
  return std::move(builder).build();
}

// Sixteen chains side by side.
Graph chains() {
  constexpr OpId kChains = 16;
  GraphBuilder builder("chains");
  for (OpId op = 0; op < kOps; ++op) {
    builder.add_op({.explicit_times = {{"*", 1}}});
    builder.add_tensor(op, 0, 0.0);
    if (op >= kChains) builder.add_consumer(op - kChains, op);
  }
  return std::move(builder).build();
}

// Most edges cross: along a chain or from layer to layer the worker changes.
std::vector<DeviceId> round_robin(const Graph& graph, OpId width) {
  std::vector<DeviceId> result(graph.op_count());
  for (OpId op = 0; op < graph.op_count(); ++op) result[op] = (op + op / width) % kWorkers;
  return result;
}
// Each chain stays where it began.
std::vector<DeviceId> together(const Graph& graph, OpId width) {
  std::vector<DeviceId> result(graph.op_count());
  for (OpId op = 0; op < graph.op_count(); ++op) result[op] = op % width % kWorkers;
  return result;
}

struct Workload {
  std::string name;
  Graph graph;
  std::vector<DeviceId> device_of_op;
};

void report(benchmark::State& state) { state.SetItemsProcessed(state.iterations() * kOps); }

class NoKernels final : public Kernels {
  void run(OpId, DeviceId, const OpBuffers&) override {}
};

void run_ours(benchmark::State& state, const Workload& work, bool laid_out) {
  const Machine machine = uniform_machine(kWorkers);
  const Costs costs(work.graph, machine);
  const Problem problem(work.graph, machine);
  ThreadsExecutor executor(problem, {.kernels = std::make_shared<NoKernels>()});
  Placement placement{work.device_of_op, default_priority(costs), {}};
  executor.time(placement);
  for (auto _ : state) {
    if (!laid_out) std::swap(placement.priority[0], placement.priority[1]);  // another placement, as long
    benchmark::DoNotOptimize(executor.time(placement));
  }
  report(state);
}

#ifdef DOPPLER_WITH_STARPU
void nothing(void**, void*) {}

std::vector<starpu_task*> starpu_tasks(const Workload& work, starpu_codelet& codelet) {
  std::vector<starpu_task*> tasks(work.graph.op_count());
  for (OpId op = 0; op < work.graph.op_count(); ++op) {
    tasks[op] = starpu_task_create();
    tasks[op]->cl = &codelet;
    tasks[op]->execute_on_a_specific_worker = 1;
    tasks[op]->workerid = work.device_of_op[op];
    std::vector<starpu_task*> producers;
    for (const TensorId tensor : work.graph.inputs(op)) producers.push_back(tasks[work.graph.producer(tensor)]);
    if (!producers.empty())
      starpu_task_declare_deps_array(tasks[op], static_cast<unsigned>(producers.size()), producers.data());
  }
  return tasks;
}

void run_starpu(benchmark::State& state, const Workload& work, bool submit_paused) {
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = kWorkers;
  conf.ncuda = conf.nopencl = 0;
  if (starpu_init(&conf) != 0) return state.SkipWithError("starpu_init failed");
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.cpu_funcs[0] = nothing;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<starpu_task*> tasks = starpu_tasks(work, codelet);
    if (submit_paused) starpu_pause();
    if (!submit_paused) state.ResumeTiming();
    for (starpu_task* task : tasks)
      if (starpu_task_submit(task) != 0) state.SkipWithError("starpu_task_submit failed");
    if (submit_paused) state.ResumeTiming(), starpu_resume();
    starpu_task_wait_for_all();
  }
  starpu_shutdown();
  report(state);
}
#endif

#ifdef DOPPLER_WITH_TBB
void run_tbb(benchmark::State& state, const Workload& work) {
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kWorkers);
  tbb::flow::graph graph;
  std::vector<std::unique_ptr<Node>> nodes;
  for (OpId op = 0; op < work.graph.op_count(); ++op) {
    nodes.push_back(std::make_unique<Node>(graph, [](const tbb::flow::continue_msg& message) { return message; }));
    for (const TensorId tensor : work.graph.inputs(op))
      tbb::flow::make_edge(*nodes[work.graph.producer(tensor)], *nodes[op]);
  }
  for (auto _ : state) {
    for (OpId op = 0; op < work.graph.op_count(); ++op)
      if (work.graph.inputs(op).empty()) nodes[op]->try_put(tbb::flow::continue_msg());
    graph.wait_for_all();
  }
  report(state);
}
#endif

void add(const char* runtime, const Workload& work, void (*body)(benchmark::State&, const Workload&)) {
  benchmark::RegisterBenchmark((std::string(runtime) + "/" + work.name).c_str(), body, std::cref(work))
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->Repetitions(5)
      ->ReportAggregatesOnly();
}

void register_all(const std::vector<Workload>& workloads) {
  for (const Workload& work : workloads) {
    add("ours", work, [](benchmark::State& state, const Workload& w) { run_ours(state, w, true); });
    add("ours_first", work, [](benchmark::State& state, const Workload& w) { run_ours(state, w, false); });
#ifdef DOPPLER_WITH_STARPU
    add("starpu", work, [](benchmark::State& state, const Workload& w) { run_starpu(state, w, false); });
    add("starpu_execution", work, [](benchmark::State& state, const Workload& w) { run_starpu(state, w, true); });
#endif
#ifdef DOPPLER_WITH_TBB
    add("tbb_unplaced", work, run_tbb);
#endif
  }
}

}  // namespace
}  // namespace doppler::bench

int main(int argc, char** argv) {
  using namespace doppler::bench;
  std::vector<Workload> workloads;
  for (const bool crossing : {true, false}) {
    auto graph = chains();
    auto placed = crossing ? round_robin(graph, 16) : together(graph, 16);
    workloads.push_back({crossing ? "chains_crossing" : "chains_together", std::move(graph), std::move(placed)});
  }
  auto graph = layered();
  auto placed = round_robin(graph, 100);
  workloads.push_back({"layered_crossing", std::move(graph), std::move(placed)});
  return run_benchmarks(argc, argv, [&] { register_all(workloads); });
}
