#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/app/study.h"
#include "doppler/app/verbs.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/dot.h"
#include "doppler/graph/levels.h"
#include "doppler/report/summary.h"
#include "doppler/report/table.h"

namespace doppler {
namespace {

struct InfoOptions : Options {
  std::string graph, dot;
};

// What work is counted in: seconds on the given machine, explicit times, or flops where neither is known.
enum class Measure { seconds, unitless, flops };

struct KindShare {
  std::string kind;
  std::size_t ops = 0;
  double work = 0;
  Flops flops = 0;
  double bytes = 0;  // read and written
};

struct Facts {
  Measure measure = Measure::flops;
  std::size_t depth = 0, width = 0;
  double work = 0, critical_path = 0;
  std::optional<double> communication;  // time to move every edge; unknown without a machine or explicit times
  Bytes parameter_bytes = 0, tensor_bytes = 0, peak_activation_bytes = 0;
  Flops flops = 0;
  double bytes = 0;
  std::vector<KindShare> kinds;  // by work, then ops, then name
  std::optional<LowerBound> bound;
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

std::optional<double> edge_time(const Graph& graph, const Study* study) {
  double total = 0;
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
    const auto given = graph.explicit_transfer(tensor);
    if (study == nullptr && !given) return std::nullopt;
    total += (study != nullptr ? study->costs().mean_transfer(tensor) : *given) *
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

// `study` is null without a machine.
Facts gather(const Graph& graph, const Study* study) {
  Facts facts;
  std::vector<double> work = study != nullptr ? study->costs().fastest_times() : explicit_work(graph);
  facts.measure = work.empty() ? Measure::flops : graph.unitless() ? Measure::unitless : Measure::seconds;
  if (work.empty()) work = flops_of(graph);
  for (const double value : work) facts.work += value;
  facts.critical_path = levels(graph, work, {}).longest;
  if (facts.measure != Measure::flops) facts.communication = edge_time(graph, study);
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
  if (study != nullptr) facts.bound = lower_bound(study->problem());
  return facts;
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

std::string show_work(const Facts& facts, double value) {
  if (facts.measure == Measure::flops) return fmt::format("{:.4g} flops", value);
  return format_time(value, facts.measure == Measure::unitless);
}

std::string to_text(const InfoOptions& options, const LoadedModel& loaded, const Facts& facts) {
  const Graph& graph = loaded.graph;
  std::string text = fmt::format("graph          {} ({})\n", options.graph, loaded.format);
  text += fmt::format("ops            {}\ntensors        {}, {}\nedges          {}\n", graph.op_count(),
                      graph.tensor_count(), format_bytes(facts.tensor_bytes), graph.edge_count());
  if (const auto& model = loaded.totals) {
    text += fmt::format("nodes          {}, of which {} folded\n", model->nodes, model->folded_nodes);
    text += fmt::format("parameters     {:.4g} M, {}\n", static_cast<double>(model->parameters) / 1e6,
                        format_bytes(model->parameter_bytes));
    text += fmt::format("arithmetic     {:.4g} GMACs, {:.4g} Gflops\n", model->macs / 1e9, model->flops / 1e9);
  } else {
    text += fmt::format("parameters     {}\n", format_bytes(facts.parameter_bytes));
  }
  text += fmt::format("activations    {} at most at once, on one device\n", format_bytes(facts.peak_activation_bytes));
  text +=
      fmt::format("depth          {} levels\nwidth          {} ops in the widest level\n", facts.depth, facts.width);
  text += fmt::format("work           {}\ncritical path  {}\n", show_work(facts, facts.work),
                      show_work(facts, facts.critical_path));
  text += fmt::format("parallelism    {:.2f} on average (work over critical path)\n",
                      ratio(facts.work, facts.critical_path));
  if (facts.communication)
    text += fmt::format("communication  {:.3g} of the work, if every edge is moved\n",
                        ratio(*facts.communication, facts.work));
  if (facts.bound)
    text += fmt::format("lower bound    {} ({}) on {}\n", show_work(facts, facts.bound->value),
                        to_string(facts.bound->kind), options.machine);
  const auto percent = [](double part, double whole) { return fmt::format("{:.1f} %", 100 * ratio(part, whole)); };
  Table table({{"kind", Table::Align::left}, {"ops"}, {"work"}, {"share"}, {"of flops"}, {"of bytes"}});
  for (const KindShare& share : facts.kinds)
    table.add_row({share.kind, std::to_string(share.ops), show_work(facts, share.work), percent(share.work, facts.work),
                   percent(share.flops, facts.flops), percent(share.bytes, facts.bytes)});
  return text + "\n" + table.text();
}

std::string to_json(const InfoOptions& options, const LoadedModel& loaded, const Facts& facts) {
  using nlohmann::ordered_json;
  const Graph& graph = loaded.graph;
  constexpr const char* kUnits[] = {"s", "graph", "flops"};
  ordered_json result = {{"graph", options.graph},
                         {"format", loaded.format},
                         {"ops", graph.op_count()},
                         {"tensors", graph.tensor_count()},
                         {"edges", graph.edge_count()},
                         {"tensor_bytes", facts.tensor_bytes},
                         {"parameter_bytes", loaded.totals ? loaded.totals->parameter_bytes : facts.parameter_bytes},
                         {"resident_bytes", facts.parameter_bytes},
                         {"peak_activation_bytes", facts.peak_activation_bytes},
                         {"flops", loaded.totals ? loaded.totals->flops : facts.flops},
                         {"depth", facts.depth},
                         {"width", facts.width},
                         {"unit", kUnits[static_cast<int>(facts.measure)]},
                         {"work", facts.work},
                         {"critical_path", facts.critical_path},
                         {"average_parallelism", ratio(facts.work, facts.critical_path)},
                         {"communication_to_computation", nullptr}};
  if (facts.communication) result["communication_to_computation"] = ratio(*facts.communication, facts.work);
  if (facts.bound) {
    result["machine"] = options.machine;
    result["lower_bound"] = facts.bound->value;
    result["bound_kind"] = to_string(facts.bound->kind);
  }
  if (const auto& model = loaded.totals) {
    result["macs"] = model->macs;
    result["parameters"] = model->parameters;
    result["nodes"] = model->nodes;
    result["folded_nodes"] = model->folded_nodes;
  }
  auto& kinds = result["kinds"] = ordered_json::array();
  for (const KindShare& share : facts.kinds)
    kinds.push_back({{"kind", share.kind},
                     {"ops", share.ops},
                     {"work", share.work},
                     {"flops", share.flops},
                     {"flops_share", ratio(share.flops, facts.flops)},
                     {"bytes", share.bytes},
                     {"bytes_share", ratio(share.bytes, facts.bytes)}});
  result["warnings"] = loaded.warnings;
  return result.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void run_info(const InfoOptions& options) {
  std::unique_ptr<Study> study;
  std::optional<LoadedModel> alone;
  if (options.machine.empty())
    alone = load_graph(options.graph, options);
  else
    study = std::make_unique<Study>(options.graph, options);
  const LoadedModel& loaded = study != nullptr ? study->loaded() : *alone;
  const Facts facts = gather(loaded.graph, study.get());
  if (!options.dot.empty()) write_file_atomically(options.dot, graph_to_dot(loaded.graph));
  write_json_if_asked(options, to_json(options, loaded, facts));
  print_text(options, to_text(options, loaded, facts));
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
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer("Example:\n  doppler info examples/blocks.json --machine p100x4");
  verb->callback([options] { run_info(*options); });
}

}  // namespace doppler
