#include "doppler/app/programs.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/native_json.h"
#include "doppler/program/text/program_json.h"

namespace doppler {

using program::Program;

void add_program_flags(CLI::App& verb, ProgramOptions& options) {
  verb.add_option("--parts", options.parts, "Most blocks per expression; usually the number of devices")
      ->check(whole_number())
      ->capture_default_str();
  verb.add_option("--plan", options.plan, "How to cut: eindecomp, data, model, uncut, or published (generate only)")
      ->capture_default_str();
  verb.add_option("--train", options.train, "Add backward pass and update: sgd or adam");
  verb.add_option("-m,--machine", options.machine,
                  "A machine whose speeds and memory decide; default: P100s on PCIe 3, memory unlimited")
      ->type_name("MACHINE");
}

void add_lowering_flags(CLI::App& verb, ProgramOptions& options) {
  verb.add_option("--costs", options.costs, "Costs of ops and tensors: per-block, seconds or published")
      ->capture_default_str();
  verb.add_option("-o,--output", options.output, "Where the graph goes; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
}

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

program::DecomposeOptions decompose_options(const ProgramOptions& options) {
  program::DecomposeOptions result{.parts = options.parts};
  if (options.machine.empty()) return result;
  const Machine machine = load_machine(options.machine);
  result.speeds = speeds_of(machine);
  result.devices = machine.device_count();
  return result;
}

program::Plan make_plan(const Program& program, const ProgramOptions& options, std::optional<program::Family> family) {
  if (options.parts < 1) throw InputError("--parts: found 0; required at least 1");
  if (options.plan == "eindecomp") return program::decompose(program, decompose_options(options))[0].plan;
  if (options.plan == "data") return program::data_parallel(program, options.parts);
  if (options.plan == "model") return program::model_parallel(program, options.parts);
  if (options.plan == "uncut") return program::uncut(program);
  if (options.plan == "published" && family) return program::published_plan(program, *family, options.parts);
  throw InputError(fmt::format("--plan: found '{}'; required eindecomp, data, model, uncut{}", options.plan,
                               family ? " or published" : ""));
}

void train_if_asked(Program& program, std::optional<program::ExprId> loss, const ProgramOptions& options) {
  if (options.train.empty()) return;
  const program::Optimizer optimizer = program::parse_optimizer(options.train);
  if (!loss) throw InputError("--train: found no loss; required a statement 'loss name'");
  program::add_training_step(program.expr(*loss), optimizer);
}

void write_lowered(const Program& program, const program::Plan& plan, const std::string& title,
                   const ProgramOptions& options) {
  const program::LowerOptions lowering{
      .costs = program::parse_cost_mode(options.costs), .speeds = decompose_options(options).speeds, .title = title};
  write_file_atomically(options.output, graph_to_json(program::lower(program, plan, lowering).graph,
                                                      program::program_to_json(program, plan, lowering)));
}

program::EinProgram read_ein(const std::string& path) { return program::parse_ein(path, read_file(path)); }

LoadedGraph lower_for(const std::string& where, const std::string& text, const std::string& machine) {
  const program::EinProgram model = program::parse_ein(where, text);
  program::Plan plan = program::uncut(*model.program);
  if (!machine.empty()) {
    const Machine devices = load_machine(machine);
    program::DecomposeOptions options{.parts = devices.device_count()};
    options.speeds = speeds_of(devices);
    plan = program::decompose(*model.program, options)[0].plan;
  }
  const program::LowerOptions lowering{.title = where};
  return {program::lower(*model.program, plan, lowering).graph,
          "ein",
          {},
          program::program_to_json(*model.program, plan, lowering)};
}

}  // namespace doppler
