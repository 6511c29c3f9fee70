// The engine's kernels against what the machine can do: matrix products against the peak of the core, measured in the
// same run, and against the bare calls of other libraries; everything that is bound by memory against memcpy. Rates are
// by processor time, so that others on the machine count little.
//   build/release/bin/kernel_bench --benchmark_format=json

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include "doppler/kernels/generate_inputs.h"
#include "doppler/kernels/host/fma_peak.h"
#include "doppler/kernels/host/onednn.h"
#include "doppler/kernels/host/processor.h"
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

template <typename Build>
void measure_bytes(benchmark::State& state, Build build) {
  OneOp op(build);
  for (auto _ : state) op.run();
  state.counters["GB/s"] =
      benchmark::Counter(op.bytes() * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// ---- matrix products: ours, what the core can do, and rivals ----

const FmaPeak& peak() {
  static const FmaPeak measured = measure_fma_peak();
  return measured;
}

// Counts by processor time, and as a share of what the core does at most in the same run.
void count_flops(benchmark::State& state, DType dtype, double flops) {
  const double total = flops * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of peak"] =
      benchmark::Counter(total / (dtype == DType::f32 ? peak().f32 : peak().f64), benchmark::Counter::kIsRate);
}

struct Size {
  Index m, n, k;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};
Size size_of(const benchmark::State& state) { return {state.range(0), state.range(1), state.range(2)}; }

// Squares, a cut of LLAMA's weights, and blocks of FFNN, of attention's scores and of a few tokens.
void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const Index n : {64, 128, 256, 512, 1024, 2048}) benchmark->Args({n, n, n});
  benchmark->Args({128, 2304, 768})->Args({128, 2048, 256})->Args({512, 512, 64})->Args({100, 100, 100});
  benchmark->Args({4, 768, 768})->ArgNames({"m", "n", "k"});
}
void few_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const Index n : {64, 256, 1024}) benchmark->Args({n, n, n});
  benchmark->Args({128, 2304, 768})->ArgNames({"m", "n", "k"});
}

void BM_Peak(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(measure_fma_peak());
  state.counters["f32 GFLOP/s"] = peak().f32 * 1e-9;
  state.counters["f64 GFLOP/s"] = peak().f64 * 1e-9;
}
BENCHMARK(BM_Peak)->Unit(benchmark::kMillisecond);

// Label i has m values and k has n; j is summed up.
void BM_Product(benchmark::State& state, DType dtype, const char* labels) {
  const Size size = size_of(state);
  const auto extent = [&](char label) { return label == 'i' ? size.m : label == 'k' ? size.n : size.k; };
  OneOp op([&](Program& p) {
    return p.einsum(labels, {p.input("x", {extent(labels[0]), extent(labels[1])}, dtype),
                             p.input("y", {extent(labels[3]), extent(labels[4])}, dtype)});
  });
  for (auto _ : state) op.run();
  count_flops(state, dtype, size.flops());
}
BENCHMARK_CAPTURE(BM_Product, f32, DType::f32, "ij,jk->ik")->Apply(sizes);
BENCHMARK_CAPTURE(BM_Product, f32_transposed, DType::f32, "ji,kj->ik")->Apply(few_sizes);
BENCHMARK_CAPTURE(BM_Product, f64, DType::f64, "ij,jk->ik")->Apply(sizes);
BENCHMARK_CAPTURE(BM_Product, f64_transposed, DType::f64, "ji,kj->ik")->Apply(few_sizes);

// The scores of attention: strided batches, read in place.
void BM_AttentionScores(benchmark::State& state, DType dtype) {
  const Index tokens = state.range(0), heads = 8, width = 64;
  OneOp op([&](Program& p) {
    return p.einsum("bshd,bthd->bhst",
                    {p.input("q", {1, tokens, heads, width}, dtype), p.input("k", {1, tokens, heads, width}, dtype)});
  });
  for (auto _ : state) op.run();
  count_flops(state, dtype, 2.0 * static_cast<double>(heads * tokens * tokens * width));
}
BENCHMARK_CAPTURE(BM_AttentionScores, f32, DType::f32)->Arg(512);
BENCHMARK_CAPTURE(BM_AttentionScores, f64, DType::f64)->Arg(512);

void BM_BareOnednn(benchmark::State& state) {
  const Size size = size_of(state);
  const std::vector<float> a(static_cast<std::size_t>(size.m * size.k), 0.5f);
  const std::vector<float> b(static_cast<std::size_t>(size.k * size.n), 0.5f);
  std::vector<float> c(static_cast<std::size_t>(size.m * size.n));
  for (auto _ : state)
    onednn_sgemm({'N', 'N', size.m, size.n, size.k, a.data(), size.k, b.data(), size.n, c.data(), size.n});
  count_flops(state, DType::f32, size.flops());
}
BENCHMARK(BM_BareOnednn)->Apply(few_sizes);

// The bare calls of libraries, each loaded as a copy of its own so that one library can be told different things.
class Rival {
 public:
  // `file` may be absent, and then so is the rival. `core_type` is what OpenBLAS is told, null for its own choice.
  Rival(const char* file, const char* core_type) {
    ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
    ::setenv("BLIS_NUM_THREADS", "1", 1);
    if (core_type != nullptr) ::setenv("OPENBLAS_CORETYPE", core_type, 1);
    library_ = ::dlopen(copy_of(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    ::unsetenv("OPENBLAS_CORETYPE");
  }
  template <typename Function>
  Function* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library_, name));
  }

 private:
  // In memory; it lives as long as the process.
  static std::string copy_of(const char* file) {
    std::ifstream from(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(from), {}};
    const int copy = ::memfd_create("rival", 0);
    if (::write(copy, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return "";
    return "/proc/self/fd/" + std::to_string(copy);
  }

  void* library_;
};

constexpr int kRowMajor = 101, kNoTranspose = 111;
constexpr const char* kOpenBlas = DOPPLER_OPENBLAS_DIRECTORY "/libopenblas.so.0";
constexpr const char* kSkylakeX = "SkylakeX";
constexpr const char* kBlis = "/usr/lib/x86_64-linux-gnu/libblis.so.4";

template <typename T>
using CblasGemm = void(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

template <typename T>
void multiply(benchmark::State& state, const char* file, const char* core_type) {
  if (core_type == kSkylakeX && !processor_features().avx512) return state.SkipWithError("no AVX-512");
  static std::map<std::pair<std::string, std::string>, Rival> rivals;
  const auto found = rivals.try_emplace({file, core_type == nullptr ? "" : core_type}, file, core_type).first;
  constexpr bool single = std::is_same_v<T, float>;
  auto* const gemm = found->second.template function<CblasGemm<T>>(single ? "cblas_sgemm" : "cblas_dgemm");
  if (gemm == nullptr) return state.SkipWithError("not installed");
  const Size size = size_of(state);
  const int m = static_cast<int>(size.m), n = static_cast<int>(size.n), k = static_cast<int>(size.k);
  const std::vector<T> a(static_cast<std::size_t>(m * k), T(0.5)), b(static_cast<std::size_t>(k * n), T(0.5));
  std::vector<T> c(static_cast<std::size_t>(m * n));
  for (auto _ : state)
    gemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n);
  count_flops(state, single ? DType::f32 : DType::f64, size.flops());
}
void BM_Sgemm(benchmark::State& state, const char* file, const char* type) { multiply<float>(state, file, type); }
void BM_Dgemm(benchmark::State& state, const char* file, const char* type) { multiply<double>(state, file, type); }
#define CBLAS_BENCHMARK(name, file, core_type)                          \
  BENCHMARK_CAPTURE(BM_Sgemm, name, file, core_type)->Apply(few_sizes); \
  BENCHMARK_CAPTURE(BM_Dgemm, name, file, core_type)->Apply(few_sizes)
CBLAS_BENCHMARK(openblas_by_default, kOpenBlas, nullptr);
CBLAS_BENCHMARK(openblas_skylakex, kOpenBlas, kSkylakeX);
CBLAS_BENCHMARK(openblas_haswell, kOpenBlas, "Haswell");
CBLAS_BENCHMARK(blis, kBlis, nullptr);

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
