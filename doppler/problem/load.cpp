#include "doppler/load.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/problem/graph_files.h"
#include "doppler/program/cut/decompose.h"
#include "doppler/program/text/ein_text.h"

namespace doppler {
namespace {

std::vector<Pin> parse_pins(const Graph& graph, const Machine& machine, const std::vector<std::string>& texts) {
  std::vector<Pin> pins;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');  // an op's name may contain one
    if (equals == std::string::npos) throw InputError(fmt::format("--pin: found '{}'; required op=device", text));
    pins.emplace_back(graph.op_by_name(std::string_view(text).substr(0, equals)),
                      machine.device_by_name(std::string_view(text).substr(equals + 1)));
  }
  return pins;
}

program::DecomposeOptions cut_for(const Machine& machine, program::Index parts) {
  program::DecomposeOptions options{.parts = parts};
  options.speeds = speeds_of(machine);
  return options;
}

GraphFile read_model(const std::string& path, std::string content, const Machine* machine, const LoadOptions& options) {
  program::OnnxOptions importing;
  importing.dims = options.dims;
  importing.shard = options.shard;
  importing.rewrite = options.rewrite;
  importing.runnable = options.runnable && options.shard == 0;
  importing.decompose.parts = options.shard;
  if (options.shard > 0 && machine != nullptr) {
    importing.decompose = cut_for(*machine, options.shard);
    importing.decompose.devices = machine->device_count();
  }
  program::ImportedModel model = program::import_onnx(path, content, importing);
  GraphFile file;
  file.path = path;
  file.format = "onnx";
  file.graph = std::make_shared<Graph>(std::move(model.graph));
  if (options.runnable) content.clear();
  file.onnx = std::make_shared<OnnxFile>(
      OnnxFile{model.totals, std::move(model.op_of_node), std::move(model.rewrites), std::move(content)});
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

}  // namespace

program::Speeds speeds_of(const Machine& machine) {
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

GraphFile read_graph_file(const std::string& path, const Machine* machine, const LoadOptions& options) {
  return parse_graph_file(path, read_file(path), machine, options);
}

GraphFile parse_graph_file(const std::string& path, std::string content, const Machine* machine,
                           const LoadOptions& options) {
  if (program::looks_like_onnx(content)) return read_model(path, std::move(content), machine, options);
  if (options.shard > 0 || !options.dims.empty())
    throw InputError(
        fmt::format("{}: --{} is for ONNX models; required one", path, options.shard > 0 ? "shard" : "dim"));
  if (program::looks_like_ein(content)) return read_program(path, content, machine);
  return read_graph_text(path, content, options);
}

Problem make_problem(const GraphFile& file, const Machine& machine, const LoadOptions& options) {
  Rules rules = options.rules;
  rules.links = options.links.value_or(machine.link_model());
  const Problem problem(file.graph, std::make_shared<Machine>(machine), rules,
                        parse_pins(*file.graph, machine, options.pins));
  if (file.model) return problem.with(file.model);
  return file.program ? problem.with(file.program) : problem;
}

LoadedProblem load_problem(const std::string& path, const Machine& machine, const LoadOptions& options) {
  GraphFile file = read_graph_file(path, &machine, options);
  Problem problem = make_problem(file, machine, options);
  return {std::move(file), std::move(problem)};
}

}  // namespace doppler
