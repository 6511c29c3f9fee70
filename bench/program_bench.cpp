// The front end: how long a large model takes to be cut and lowered.
//   build/release/bin/program_bench --benchmark_format=json

#include <benchmark/benchmark.h>

#include "doppler/program/cut/decompose.h"
#include "doppler/program/expr/autodiff.h"
#include "doppler/program/expr/workloads.h"

namespace doppler::program {
namespace {

// Required: at most 2 s for the whole way from nothing to the graph.
void BM_LowerLlama7b(benchmark::State& state) {
  OpId ops = 0;
  for (auto _ : state) {
    Program program;
    llama(program, llama_model("7b"));
    ops = lower(program, published_plan(program, Family::llama_model, 8)).graph.op_count();
  }
  state.counters["ops"] = ops;
}
BENCHMARK(BM_LowerLlama7b)->Unit(benchmark::kMillisecond);

// Required: at most 60 s.
void BM_DecomposeLlama65b(benchmark::State& state) {
  Program program;
  llama(program, llama_model("65b"));
  double seconds = 0;
  for (auto _ : state) seconds = decompose(program, {.parts = state.range(0)})[0].cost.seconds;
  state.counters["expressions"] = program.size();
  state.counters["estimate"] = seconds;
}
BENCHMARK(BM_DecomposeLlama65b)->Arg(8)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

// The baselines of EinDecomp on the same model and by the same measure, for the ratio.
void BM_BaselinePlans65b(benchmark::State& state) {
  Program program;
  llama(program, llama_model("65b"));
  const DecomposeOptions options{.parts = 8};
  for (auto _ : state) {
    state.counters["data"] = estimate(program, data_parallel(program, 8), options).seconds;
    state.counters["model"] = estimate(program, model_parallel(program, 8), options).seconds;
    state.counters["published"] = estimate(program, published_plan(program, Family::llama_model, 8), options).seconds;
  }
}
BENCHMARK(BM_BaselinePlans65b)->Unit(benchmark::kMillisecond);

void BM_TrainingStepLlama7b(benchmark::State& state) {
  ExprId expressions = 0;
  for (auto _ : state) {
    Program program;
    LlamaOptions options = llama_model("7b");
    options.train = true;
    llama(program, options);
    add_training_step(program.expr(program.outputs()[0]), Optimizer::adam);
    expressions = program.size();
  }
  state.counters["expressions"] = expressions;
}
BENCHMARK(BM_TrainingStepLlama7b)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace doppler::program

BENCHMARK_MAIN();
