#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/loading.h"
#include "doppler/app/product_shares.h"
#include "doppler/app/verbs.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/dot.h"
#include "doppler/graph/levels.h"
#include "doppler/problem/graph_files.h"

namespace doppler {
namespace {

struct InfoOptions : Options {
  std::string graph, dot;
  bool kernels = false;
};

// The fastest explicit time of each op; empty if any op has none.
std::vector<Seconds> explicit_work(const Graph& graph) {
  std::vector<Seconds> work(graph.op_count(), Costs::kNever);
  for (OpId op = 0; op < graph.op_count(); ++op) {
    for (std::size_t column = 0; column < graph.cost_types().size(); ++column)
      if (const Seconds time = graph.explicit_time(op, column); !std::isnan(time)) work[op] = std::min(work[op], time);
    if (work[op] == Costs::kNever) return {};
  }
  return work;
}

std::vector<Seconds> flops_of(const Graph& graph) {
  std::vector<Seconds> work;
  for (OpId op = 0; op < graph.op_count(); ++op) work.push_back(graph.flops(op));
  return work;
}

std::vector<KindShare> kind_shares(const Graph& graph, const std::vector<double>& work) {
  std::vector<KindShare> shares;
  std::map<std::uint32_t, std::size_t> index;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    const auto [entry, added] = index.try_emplace(graph.kind_id(op), shares.size());
    if (added) shares.push_back({.kind = graph.kind(op)});
    ++shares[entry->second].ops;
    shares[entry->second].work += work[op];
    shares[entry->second].flops += graph.flops(op);
    shares[entry->second].bytes +=
        static_cast<double>(graph.bytes_read(op)) + static_cast<double>(graph.bytes_written(op));
  }
  std::sort(shares.begin(), shares.end(), [](const KindShare& a, const KindShare& b) {
    return std::tuple(-a.work, b.ops, a.kind) < std::tuple(-b.work, a.ops, b.kind);
  });
  return shares;
}

std::optional<double> edge_time(const Graph& graph, const Problem* problem) {
  double total = 0;
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
    const auto given = graph.explicit_transfer(tensor);
    if (problem == nullptr && !given) return std::nullopt;
    total += (problem != nullptr ? problem->costs().mean_transfer(tensor) : *given) *
             static_cast<double>(graph.consumers(tensor).size());
  }
  return total;
}

// The most bytes that tensors take at once if one device runs the ops in topological order and keeps what nobody reads.
Bytes peak_activation(const Graph& graph) {
  std::vector<std::size_t> readers(graph.tensor_count());
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) readers[tensor] = graph.consumers(tensor).size();
  Bytes live = 0, peak = 0;
  for (const OpId op : graph.topological_order()) {
    for (const TensorId tensor : graph.outputs(op)) live += graph.bytes(tensor);
    peak = std::max(peak, live);
    for (const TensorId tensor : graph.inputs(op))
      if (--readers[tensor] == 0) live -= graph.bytes(tensor);
  }
  return peak;
}

ModelFacts model_facts(const program::OnnxTotals& totals) {
  return {.macs = totals.macs,
          .flops = totals.flops,
          .parameters = static_cast<std::uint64_t>(totals.parameters),
          .parameter_bytes = totals.parameter_bytes,
          .nodes = totals.nodes,
          .folded_nodes = totals.folded_nodes};
}

// `problem` is null without a machine.
GraphFacts gather(const GraphFile& file, const Problem* problem) {
  const Graph& graph = *file.graph;
  GraphFacts facts;
  facts.graph = file.path;
  facts.format = file.format;
  facts.warnings = file.warnings;
  facts.ops = graph.op_count();
  facts.tensors = graph.tensor_count();
  facts.edges = graph.edge_count();
  if (file.onnx) facts.model = model_facts(file.onnx->totals);
  std::vector<double> work = problem != nullptr ? problem->costs().fastest_times() : explicit_work(graph);
  facts.measure = work.empty()       ? GraphFacts::Measure::flops
                  : graph.unitless() ? GraphFacts::Measure::unitless
                                     : GraphFacts::Measure::seconds;
  if (work.empty()) work = flops_of(graph);
  for (const double value : work) facts.work += value;
  facts.critical_path = levels(graph, work, {}).longest;
  if (facts.measure != GraphFacts::Measure::flops) facts.communication = edge_time(graph, problem);
  std::vector<std::size_t> ops_at_depth;
  for (const std::uint32_t depth : depths(graph)) {
    ops_at_depth.resize(std::max<std::size_t>(ops_at_depth.size(), depth + 1));
    ++ops_at_depth[depth];
  }
  facts.depth = ops_at_depth.size();
  facts.width = *std::max_element(ops_at_depth.begin(), ops_at_depth.end());
  for (OpId op = 0; op < graph.op_count(); ++op) facts.parameter_bytes += graph.parameter_bytes(op);
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) facts.tensor_bytes += graph.bytes(tensor);
  facts.peak_activation_bytes = peak_activation(graph);
  facts.kinds = kind_shares(graph, work);
  for (const KindShare& share : facts.kinds) facts.flops += share.flops, facts.bytes += share.bytes;
  for (KindShare& share : facts.kinds) {
    if (facts.flops > 0) share.flops_share = share.flops / facts.flops;
    if (facts.bytes > 0) share.bytes_share = share.bytes / facts.bytes;
  }
  if (problem != nullptr) facts.bound = lower_bound(*problem);
  return facts;
}

void run_info(const InfoOptions& options) {
  check_outputs({options.graph, options.machine},
                {{"--dot", options.dot}, {"--json", options.json}, {"--html", options.html}});
  std::optional<Machine> machine;
  if (!options.machine.empty()) machine = machine_from(options);
  const GraphFile file = load_graph(options.graph, machine ? &*machine : nullptr, options);
  std::optional<Problem> problem;
  if (machine) problem = make_problem(file, *machine, load_options(options));
  GraphFacts facts = gather(file, problem ? &*problem : nullptr);
  if (machine) facts.machine = options.machine;
  if (options.kernels) facts.products = product_shares(options.quiet);
  if (!options.dot.empty()) write_file_atomically(options.dot, graph_to_dot(*file.graph));
  present(options, facts);
}

}  // namespace

void add_info(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("info", "Describe a graph, and its lower bound on a machine");
  auto options = std::make_shared<InfoOptions>();
  verb->add_option("graph", options->graph,
                   "A graph in any format of docs/formats.md, or a program (.ein); - is standard input")
      ->required();
  add_machine_flag(*verb, *options, false);
  verb->add_option("--dot", options->dot, "The graph for Graphviz")->type_name("FILE");
  verb->add_flag("--kernels", options->kernels,
                 "Measure how fast matrix products are on a core of this box, and what it can do at most (0.1 s)");
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer("Example:\n  doppler info examples/blocks.json --machine p100x4");
  verb->callback([options] { run_info(*options); });
}

}  // namespace doppler
