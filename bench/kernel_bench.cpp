// The engine's kernels against what the machine can do: matrix products against a bare BLAS call, everything that is
// bound by memory against memcpy.
//   build/release/bin/kernel_bench --benchmark_format=json

#include <cblas.h>
#include <cstring>

#include <benchmark/benchmark.h>

#include "doppler/kernels/generate_inputs.h"
#include "doppler/kernels/program_kernels.h"
#include "doppler/program/expr/library.h"

namespace doppler {
namespace {

using namespace program;

// The first op of a program, all of whose operands are resident.
class OneOp {
 public:
  // `build` adds inputs and one expression.
  template <typename Build>
  explicit OneOp(Build build) {
    program_.mark_output(build(program_));
    lowered_ = lower(program_, uncut(program_));
    kernels_ = std::make_unique<ProgramKernels>(program_, lowered_, generate_inputs(program_, 1));
    for (const TensorId tensor : lowered_.graph.outputs(op_)) {
      memory_.emplace_back(lowered_.graph.bytes(tensor));
      std::memset(memory_.back().data(), 0, memory_.back().size());
      outputs_.push_back(memory_.back().data());
    }
  }

  void run() { kernels_->run(op_, 0, {{}, outputs_}); }
  double bytes() const {
    return static_cast<double>(lowered_.graph.bytes_read(op_) + lowered_.graph.bytes_written(op_));
  }

 private:
  Program program_;
  Lowered lowered_;
  std::unique_ptr<ProgramKernels> kernels_;
  OpId op_ = 0;
  std::vector<AlignedBytes> memory_;
  std::vector<std::byte*> outputs_;
};

void count_flops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

template <typename Build>
void measure_bytes(benchmark::State& state, Build build) {
  OneOp op(build);
  for (auto _ : state) op.run();
  state.counters["GB/s"] =
      benchmark::Counter(op.bytes() * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// ---- matrix products ----

void BM_Product(benchmark::State& state, DType dtype, const char* labels) {
  const Index n = state.range(0);
  OneOp op([&](Program& p) { return p.einsum(labels, {p.input("x", {n, n}, dtype), p.input("y", {n, n}, dtype)}); });
  for (auto _ : state) op.run();
  count_flops(state, 2.0 * static_cast<double>(n * n * n));
}
BENCHMARK_CAPTURE(BM_Product, f32, DType::f32, "ij,jk->ik")->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Product, f32_transposed, DType::f32, "ji,kj->ik")->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Product, f64, DType::f64, "ij,jk->ik")->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_BareSgemm(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const std::vector<float> a(static_cast<std::size_t>(n * n), 0.5f), b = a;
  std::vector<float> c(a.size());
  for (auto _ : state)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  count_flops(state, 2.0 * n * n * n);
}
BENCHMARK(BM_BareSgemm)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_BareDgemm(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const std::vector<double> a(static_cast<std::size_t>(n * n), 0.5), b = a;
  std::vector<double> c(a.size());
  for (auto _ : state)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  count_flops(state, 2.0 * n * n * n);
}
BENCHMARK(BM_BareDgemm)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

// The scores of attention: strided batches, read in place.
void BM_AttentionScores(benchmark::State& state) {
  const Index tokens = state.range(0), heads = 8, width = 64;
  OneOp op([&](Program& p) {
    return p.einsum("bshd,bthd->bhst",
                    {p.input("q", {1, tokens, heads, width}), p.input("k", {1, tokens, heads, width})});
  });
  for (auto _ : state) op.run();
  count_flops(state, 2.0 * static_cast<double>(heads * tokens * tokens * width));
}
BENCHMARK(BM_AttentionScores)->Arg(512)->Unit(benchmark::kMillisecond);

// ---- bound by memory: rows × 2048 of f32 ----

constexpr Index kColumns = 2048;
const Scalar kX = Scalar::argument(0), kY = Scalar::argument(1);

void BM_Memcpy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0) * kColumns) * sizeof(float);
  const AlignedBytes from(bytes), to(bytes);
  std::memset(from.data(), 1, bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(bytes) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
void BM_Add(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) {
    return p.map({p.input("x", {rows, kColumns}), p.input("y", {rows, kColumns})}, kX + kY);
  });
}
void BM_Silu(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) { return silu(p.input("x", {rows, kColumns})); });
}
void BM_RowMax(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) {
    return p.einsum("ij->i", {p.input("x", {rows, kColumns})}, {.aggregate = Aggregate::max});
  });
}
void BM_RowSum(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) { return p.einsum("ij->i", {p.input("x", {rows, kColumns})}); });
}
void BM_ColumnSum(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) { return p.einsum("ij->j", {p.input("x", {rows, kColumns})}); });
}
void BM_ExpOfShifted(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) {
    return p.einsum("ij,i->ij", {p.input("x", {rows, kColumns}), p.input("m", {rows})}, {.join = exp(kX - kY)});
  });
}
void BM_DivideByRow(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) {
    return p.einsum("ij,i->ij", {p.input("x", {rows, kColumns}), p.input("s", {rows})}, {.join = kX / kY});
  });
}
void BM_Transpose(benchmark::State& state) {
  const Index rows = state.range(0);
  measure_bytes(state, [&](Program& p) { return p.einsum("ij->ji", {p.input("x", {rows, kColumns})}); });
}
// 64 rows lie in the caches, 8192 do not.
#define MEMORY_BENCHMARK(name) BENCHMARK(name)->Arg(64)->Arg(8192)->Unit(benchmark::kMicrosecond)
MEMORY_BENCHMARK(BM_Memcpy);
MEMORY_BENCHMARK(BM_Add);
MEMORY_BENCHMARK(BM_Silu);
MEMORY_BENCHMARK(BM_RowMax);
MEMORY_BENCHMARK(BM_ExpOfShifted);
MEMORY_BENCHMARK(BM_RowSum);
MEMORY_BENCHMARK(BM_DivideByRow);
MEMORY_BENCHMARK(BM_ColumnSum);
MEMORY_BENCHMARK(BM_Transpose);

}  // namespace
}  // namespace doppler

BENCHMARK_MAIN();
