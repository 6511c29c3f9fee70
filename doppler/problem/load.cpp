#include "doppler/load.h"

#include <algorithm>
#include <filesystem>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/mapped_file.h"
#include "doppler/base/parse_enum.h"
#include "doppler/base/similar.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/problem/graph_files.h"
#include "doppler/problem/modules.h"
#include "doppler/problem/times.h"
#include "doppler/program/cut/decompose.h"
#include "doppler/program/text/ein_text.h"

namespace doppler {
namespace {

// The ops that a text names: one by its name, those of a module, or those that a pattern with * or ? matches.
std::vector<OpId> ops_named(const std::string& where, const Graph& graph, const Modules& modules,
                            const std::string& text) {
  if (const OpId op = graph.find_op(text); op < graph.op_count()) return {op};
  std::vector<OpId> ops;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    const std::vector<Modules::Id> path = modules.path(op);
    const auto fits = [&](Modules::Id id) { return matches(text, modules[id].name); };
    if (matches(text, graph.name(op)) || std::any_of(path.begin(), path.end(), fits)) ops.push_back(op);
  }
  if (!ops.empty()) return ops;
  std::vector<std::string> names;
  for (OpId op = 0; op < graph.op_count(); ++op) names.push_back(graph.name(op));
  for (Modules::Id id = 0; id < modules.size(); ++id) names.push_back(modules[id].name);
  throw InputError(fmt::format("{}: no op named '{}'; required one of its {} ops{}, or a pattern such as 'layers.0*'{}",
                               where, text, graph.op_count(), modules.empty() ? "" : ", a module",
                               did_you_mean(text, names)));
}

std::vector<Pin> parse_pins(const GraphFile& file, const Machine& machine, const std::vector<std::string>& texts) {
  const Graph& graph = *file.graph;
  std::vector<Pin> pins;
  if (texts.empty()) return pins;
  const Modules modules(graph);
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');  // an op's name may contain one
    if (equals == std::string::npos) throw InputError(fmt::format("--pin: found '{}'; required op=device", text));
    const DeviceId device = machine.device_by_name(std::string_view(text).substr(equals + 1));
    for (const OpId op : ops_named(file.path, graph, modules, text.substr(0, equals))) pins.emplace_back(op, device);
  }
  return pins;
}

// Ops that read one parameter of several dimensions, such as an embedding and the head that is tied to it, share it
// only on one device. Small ones (scales, biases) are cheap to have twice.
void label_tied(const OnnxFile& onnx, std::vector<std::string>& labels) {
  constexpr Bytes kWorthSharing = 64 << 10;
  std::map<std::string, std::string> renamed;
  const auto current = [&](std::string label) {
    for (auto next = renamed.find(label); next != renamed.end(); next = renamed.find(label)) label = next->second;
    return label;
  };
  for (const program::OnnxParameter& parameter : onnx.parameters) {
    if (parameter.readers.size() < 2 || parameter.bytes < kWorthSharing) continue;
    std::string& first = labels[parameter.readers.front()];
    if (first.empty()) first = parameter.name;
    const std::string target = current(first);
    for (const OpId op : parameter.readers) {
      if (labels[op].empty()) labels[op] = target;
      if (const std::string other = current(labels[op]); other != target) renamed[other] = target;
    }
  }
  if (renamed.empty()) return;
  for (std::string& label : labels) label = current(label);
}

void group(GraphFile& file, const LoadOptions& options) {
  if (options.granularity == Granularity::op) return;
  if (options.shard > 0)
    throw InputError(fmt::format("--granularity {}: found --shard, which cuts ops apart; required one of the two",
                                 to_string(options.granularity)));
  const Modules modules(*file.graph, file.onnx ? file.onnx->parameter_names() : std::vector<std::string>());
  if (modules.empty() && options.granularity == Granularity::module && file.onnx) return;  // every node is a module
  if (modules.empty())
    throw InputError(fmt::format(
        "{}: no op is named by a module, as '/layers.0/attention/MatMul' is; required such names for --granularity {}",
        file.path, to_string(options.granularity)));
  std::vector<std::string> labels = modules.units(options.granularity);
  if (file.onnx) label_tied(*file.onnx, labels);
  file.graph = std::make_shared<Graph>(file.graph->grouped_by(labels));
}

program::DecomposeOptions cut_for(const Machine& machine, program::Index parts, std::optional<Links> links = {}) {
  program::DecomposeOptions options{.parts = parts};
  options.speeds = speeds_of(machine, links);
  return options;
}

// The content of a file; that of a mapped one stays there.
struct Content {
  std::string text;
  std::shared_ptr<const MappedFile> mapped = nullptr;
  std::string_view view() const { return mapped != nullptr ? mapped->content() : text; }
};

GraphFile read_model(const std::string& path, Content content, const Machine* machine, const LoadOptions& options) {
  program::OnnxOptions importing;
  importing.dims = options.dims;
  importing.shard = options.shard;
  importing.rewrite = options.rewrite;
  importing.runnable = options.runnable;
  if (machine != nullptr) importing.one_memory = options.links.value_or(machine->link_model()) == Links::shared;
  importing.decompose.parts = options.shard;
  if (options.shard > 0 && machine != nullptr) {
    importing.decompose = cut_for(*machine, options.shard, options.links);
    importing.decompose.devices = machine->device_count();
  }
  importing.file = content.mapped;
  program::ImportedModel model = program::import_onnx(path, content.view(), importing);
  GraphFile file;
  file.path = path;
  file.format = "onnx";
  file.graph = std::make_shared<Graph>(std::move(model.graph));
  if (options.runnable) content.text = std::string();
  file.onnx = std::make_shared<OnnxFile>(OnnxFile{model.totals, std::move(model.op_of_node), std::move(model.rewrites),
                                                  std::move(content.text), std::move(model.parameters)});
  file.model = std::move(model.runnable);
  file.warnings = std::move(model.warnings);
  return file;
}

GraphFile read_program(const std::string& path, const std::string& content, const Machine* machine) {
  program::EinProgram parsed = program::parse_ein(path, content);
  const program::Plan plan =
      machine == nullptr ? program::uncut(*parsed.program)
                         : program::decompose(*parsed.program, cut_for(*machine, machine->device_count()))[0].plan;
  return lower_to_file(path, std::move(parsed.program), plan, {.title = path});
}

GraphFile read_graph_text(const std::string& path, const std::string& content, const LoadOptions& options) {
  LoadedGraph loaded = parse_graph(path, content, {.repair = options.repair});
  GraphFile file;
  file.path = path;
  file.format = std::move(loaded.format);
  file.graph = std::make_shared<Graph>(std::move(loaded.graph));
  file.warnings = std::move(loaded.warnings);
  file.has_program = !loaded.program.empty();
  if (file.has_program && options.runnable)
    file.program = std::make_shared<program::RunnableProgram>(program::load_program(path, loaded.program, *file.graph));
  return file;
}

GraphFile parse_content(const std::string& path, Content content, const Machine* machine, const LoadOptions& options) {
  if (options.shard == LoadOptions::kAutoShard)
    throw InputError(fmt::format(
        "{}: found --shard auto; required a number, except in 'doppler place' and 'doppler run' without a placement",
        path));
  const bool is_model = program::looks_like_onnx(content.view());
  if (!is_model && (options.shard > 0 || !options.dims.empty()))
    throw InputError(
        fmt::format("{}: --{} is for ONNX models; required one", path, options.shard > 0 ? "shard" : "dim"));
  GraphFile file = is_model                                ? read_model(path, std::move(content), machine, options)
                   : program::looks_like_ein(content.text) ? read_program(path, content.text, machine)
                                                           : read_graph_text(path, content.text, options);
  group(file, options);
  if (!options.times.empty()) {
    if (machine == nullptr)
      throw InputError(fmt::format("{}: found --times without a machine; required --machine", path));
    apply_times(file, *machine, options.times);
  }
  return file;
}

}  // namespace

program::Speeds speeds_of(const Machine& machine, std::optional<Links> links) {
  const Device& device = machine.device(0);
  program::Speeds speeds;
  speeds.flops_per_second = 0;
  for (const Rate& rate : device.rates)
    speeds.flops_per_second = std::max(speeds.flops_per_second, rate.flops_per_second);
  if (speeds.flops_per_second == 0)
    throw InputError(fmt::format("machine '{}': device '{}' has no compute rates; required one to cut a program",
                                 machine.name(), device.name));
  constexpr double kUnlimited = 1e18;
  const auto or_unlimited = [](double value) { return value > 0 ? value : kUnlimited; };
  speeds.memory_bytes_per_second = or_unlimited(device.memory_bytes_per_second);
  speeds.overhead = device.overhead;
  speeds.memory = device.memory;
  if (machine.device_count() > 1) {
    speeds.link_bytes_per_second = or_unlimited(machine.link(0, 1).bytes_per_second);
    speeds.latency = machine.link(0, 1).latency;
    // What is handed over is read from the caches of another device, or from the memory that both have.
    if (links.value_or(machine.link_model()) == Links::shared)
      speeds.link_bytes_per_second = speeds.memory_bytes_per_second;
  }
  return speeds;
}

GraphFile lower_to_file(std::string name, std::shared_ptr<program::Program> program, program::Plan plan,
                        program::LowerOptions options) {
  auto runnable = std::make_shared<program::RunnableProgram>();
  runnable->lowered = program::lower(*program, plan, options);
  runnable->program = std::move(program);
  runnable->plan = std::move(plan);
  runnable->options = std::move(options);
  GraphFile file;
  file.path = std::move(name);
  file.format = "ein";
  file.graph = std::shared_ptr<const Graph>(runnable, &runnable->lowered.graph);
  file.has_program = true;
  file.program = std::move(runnable);
  return file;
}

std::vector<std::string> OnnxFile::parameter_names() const {
  std::vector<std::string> names;
  for (const program::OnnxParameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

std::string_view to_string(Granularity granularity) {
  constexpr std::string_view kNames[] = {"op", "module", "layer"};
  return kNames[static_cast<int>(granularity)];
}
Granularity parse_granularity(std::string_view text) {
  return parse_enum(text, "--granularity", std::array{Granularity::op, Granularity::module, Granularity::layer});
}

GraphFile read_graph_file(const std::string& path, const Machine* machine, const LoadOptions& options) {
  // What runs keeps its weights, and they are large; other verbs keep the whole file, to write it with devices in it.
  std::error_code unknown;
  if (options.runnable && std::filesystem::is_regular_file(path, unknown))
    if (auto file = std::make_shared<const MappedFile>(path, path); program::looks_like_onnx(file->content()))
      return parse_content(path, {{}, std::move(file)}, machine, options);
  return parse_content(path, {read_file(path)}, machine, options);
}

GraphFile parse_graph_file(const std::string& path, std::string content, const Machine* machine,
                           const LoadOptions& options) {
  return parse_content(path, {std::move(content)}, machine, options);
}

Problem make_problem(const GraphFile& file, const Machine& machine, const LoadOptions& options) {
  Rules rules = options.rules;
  rules.links = options.links.value_or(machine.link_model());
  const Problem problem(file.graph, std::make_shared<Machine>(machine), rules, parse_pins(file, machine, options.pins));
  if (file.model) return problem.with(file.model);
  return file.program ? problem.with(file.program) : problem;
}

LoadedProblem load_problem(const std::string& path, const Machine& machine, const LoadOptions& options) {
  GraphFile file = read_graph_file(path, &machine, options);
  Problem problem = make_problem(file, machine, options);
  return {std::move(file), std::move(problem)};
}

}  // namespace doppler
