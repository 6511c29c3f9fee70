#pragma once

#include <benchmark/benchmark.h>

namespace doppler::bench {

// The main program of a benchmark: unknown flags are refused, `add` registers.
template <typename Add>
int run_benchmarks(int argc, char** argv, Add add) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  add();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace doppler::bench
