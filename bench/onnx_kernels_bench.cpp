// The kernels of ONNX models against what the machine can do: all convolutions of published networks, and the linear
// layers of a transformer, one after the other on one thread, as a share of the core's peak in the same run. Rates are
// by processor time, so that others on the machine count little.
//   build/release/bin/onnx_kernels_bench

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/bench_main.h"
#include "doppler/base/error.h"
#include "doppler/kernels/array.h"
#include "doppler/kernels/host/fma_peak.h"
#include "doppler/kernels/onnx/kernel.h"
#include "doppler/program/onnx/tensor_file.h"
#include "doppler/program/onnx/zoo/zoo.h"

namespace doppler {
namespace {

using namespace model;

double peak() {
  static const double measured = measure_fma_peak().f32;
  return measured;
}

std::string model_bytes(std::string_view name) {
  program::ZooSizes sizes;
  sizes.weights = 1;
  if (name == "bert-base") {
    sizes.layers = 1;  // all layers are alike
    sizes.vocabulary = 1000;
    sizes.sequence = 128;
  }
  for (const program::ZooModel& one : program::zoo())
    if (one.name == name) return one.make(sizes);
  throw InternalError("zoo: found no such model; required one of its models");
}

double flops_of(const KernelNode& node, const TensorType& out) {
  const Shape& weights = node.inputs[1].type->shape;
  double each = 1;  // multiplications per element of the output
  if (node.op_type == "Conv")
    for (std::size_t i = 1; i < weights.size(); ++i) each *= static_cast<double>(weights[i]);
  else
    each = static_cast<double>(node.inputs[0].type->shape.back());
  return 2 * each * static_cast<double>(out.count());
}

// A kernel with memory for its tensors.
struct Prepared {
  std::unique_ptr<NodeKernel> kernel;
  std::vector<AlignedBytes> memory;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;

  void run() const { kernel->run(inputs, outputs, scratch); }
};

Prepared prepare(const KernelNode& node) {
  Prepared prepared;
  prepared.kernel = kernel_library().make(node);
  const auto room = [&](std::size_t bytes) {
    prepared.memory.emplace_back(std::max<std::size_t>(64, bytes));
    std::memset(prepared.memory.back().data(), 0, prepared.memory.back().size());
    return prepared.memory.back().data();
  };
  for (const KernelInput& input : node.inputs)
    prepared.inputs.push_back(input.constant != nullptr ? input.constant->data.get()
                              : input.type              ? room(input.type->bytes())
                                                        : nullptr);
  for (const TensorType& output : prepared.kernel->outputs()) prepared.outputs.push_back(room(output.bytes()));
  prepared.scratch = room(prepared.kernel->scratch_bytes());
  return prepared;
}

// The nodes of a model that have kernels of interest, their types found by making all kernels in order.
struct Workload {
  ModelBody body;
  std::map<std::string, Tensor> values;  // what is known; nodes point to it
  std::vector<KernelNode> nodes;
  double flops = 0;

  Workload(std::string_view name, const std::vector<std::string>& ops)
      : body(parse_model_body(std::string(name), model_bytes(name))) {
    std::map<std::string, TensorType> types;
    values = body.graph.initializers;
    const Shape given = name == "inception-v3" ? Shape{1, 3, 299, 299} : Shape{1, 3, 224, 224};
    for (const std::string& input : body.graph.inputs)
      types[input] = name == "bert-base" ? TensorType{Element::i64, {1, 128}} : TensorType{Element::f32, given};
    for (const Node& node : body.graph.nodes) {
      KernelNode made{.name = node.name, .op_type = node.op_type, .domain = node.domain, .attributes = node.attributes};
      for (const std::string& input : node.inputs) {
        const auto constant = values.find(input);
        made.inputs.push_back(constant != values.end() ? KernelInput{constant->second.type, &constant->second}
                              : input.empty()          ? KernelInput{}
                                                       : KernelInput{types.at(input)});
      }
      made.outputs_used.assign(node.outputs.size(), true);
      // What does not depend on data is computed, for shapes depend on it.
      const bool known = std::all_of(made.inputs.begin(), made.inputs.end(),
                                     [](const KernelInput& input) { return !input.type || input.constant != nullptr; });
      if (known) {
        std::vector<Value> arguments;
        for (const KernelInput& input : made.inputs)
          arguments.push_back(input.constant != nullptr ? Value(*input.constant) : Value());
        const std::vector<Value> results =
            kernel_library().evaluate(node, arguments, {&body, &body.opsets, nullptr, 0});
        for (std::size_t i = 0; i < node.outputs.size(); ++i) values[node.outputs[i]] = results[i].tensor;
        continue;
      }
      const std::vector<TensorType> outputs = kernel_library().make(made)->outputs();
      for (std::size_t i = 0; i < node.outputs.size(); ++i) types[node.outputs[i]] = outputs[i];
      const bool weighted = made.inputs.size() > 1 && made.inputs[1].constant != nullptr;
      if (!weighted || std::find(ops.begin(), ops.end(), node.op_type) == ops.end()) continue;
      flops += flops_of(made, outputs[0]);
      nodes.push_back(std::move(made));
    }
  }
};

// Sets the first layouts with the wanted one for the output that the node can have.
void set_layout(KernelNode& node, Layout wanted) {
  for (const LayoutChoice& choice : kernel_library().layouts(node)) {
    if (choice.outputs[0] != wanted) continue;
    const bool few = node.inputs[0].type->shape[1] < 4;  // the picture itself stays as it is
    if (few != (choice.inputs[0] == Layout::row_major)) continue;
    node.inputs[0].type->layout = choice.inputs[0];
    node.output_layouts = choice.outputs;
    return;
  }
}

void run_workload(benchmark::State& state, const Workload& workload, Layout layout) {
  std::vector<Prepared> kernels;
  for (KernelNode node : workload.nodes) {
    if (layout != Layout::row_major) set_layout(node, layout);
    kernels.push_back(prepare(node));
  }
  for (auto _ : state)
    for (const Prepared& kernel : kernels) kernel.run();
  const double total = workload.flops * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of peak"] = benchmark::Counter(total / peak(), benchmark::Counter::kIsRate);
}

void run_node(benchmark::State& state, const KernelNode& given, Layout layout) {
  KernelNode node = given;
  if (layout != Layout::row_major) set_layout(node, layout);
  const Prepared kernel = prepare(node);
  for (auto _ : state) kernel.run();
  const double total = flops_of(node, kernel.kernel->outputs()[0]) * static_cast<double>(state.iterations());
  state.SetLabel(kernel.kernel->implementation());
  state.counters["of peak"] = benchmark::Counter(total / peak(), benchmark::Counter::kIsRate);
}

// The attention of BERT and of ViT: scores, softmax and values of 12 heads.
void run_attention(benchmark::State& state, Index rows) {
  constexpr Index kHeads = 12, kDepth = 64;
  const TensorType type{Element::f32, {1, rows, kHeads, kDepth}};
  const std::vector<Index> order = {0, 2, 1, 3};
  const KernelNode node{
      .name = "attention",
      .op_type = "Attention",
      .domain = "doppler",
      .attributes = {{"scale", 0.125F}, {"perm_q", order}, {"perm_k", order}, {"perm_v", order}, {"perm_out", order}},
      .inputs = {{type}, {type}, {type}}};
  const Prepared kernel = prepare(node);
  for (auto _ : state) kernel.run();
  const double total = static_cast<double>(4 * kHeads * rows * rows * kDepth) * static_cast<double>(state.iterations());
  state.counters["of peak"] = benchmark::Counter(total / peak(), benchmark::Counter::kIsRate);
}

void add_benchmarks() {
  for (const Index rows : {128, 197})
    benchmark::RegisterBenchmark(("attention/" + std::to_string(rows) + " rows").c_str(), run_attention, rows)
        ->Unit(benchmark::kMicrosecond);
  static std::vector<std::unique_ptr<Workload>> workloads;
  const auto add = [](const std::string& name, const std::vector<std::string>& ops, std::vector<Layout> layouts) {
    workloads.push_back(std::make_unique<Workload>(name, ops));
    const Workload& workload = *workloads.back();
    for (const Layout layout : layouts) {
      const std::string prefix = name + "/" + std::string(to_string(layout));
      benchmark::RegisterBenchmark((prefix + "/all").c_str(), run_workload, std::cref(workload), layout)
          ->Unit(benchmark::kMillisecond);
      for (const KernelNode& node : workload.nodes)
        benchmark::RegisterBenchmark((prefix + node.name).c_str(), run_node, std::cref(node), layout)
            ->Unit(benchmark::kMicrosecond);
    }
  };
  const std::vector<Layout> image = {Layout::channels_last, Layout::blocked16, Layout::row_major};
  add("resnet50", {"Conv"}, image);
  add("inception-v3", {"Conv"}, image);
  add("mobilenet-v3", {"Conv"}, image);
  add("bert-base", {"MatMul", "Gemm"}, {Layout::row_major});
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) { return doppler::bench::run_benchmarks(argc, argv, doppler::add_benchmarks); }
