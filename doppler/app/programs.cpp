#include "doppler/app/programs.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/native_json.h"
#include "doppler/program/relational/relational_plan.h"
#include "doppler/program/text/program_json.h"

namespace doppler {

using program::Program;

void add_program_flags(CLI::App& verb, ProgramOptions& options) {
  verb.add_option("--parts", options.parts, "Most blocks per expression; usually the number of devices")
      ->check(whole_number())
      ->capture_default_str();
  verb.add_option("--plan", options.plan,
                  "How to cut: eindecomp, relational, data, model, uncut, or published (generate only)")
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
  if (options.plan == "relational") return program::relational_plan(program, decompose_options(options)).plan;
  if (options.plan == "data") return program::data_parallel(program, options.parts);
  if (options.plan == "model") return program::model_parallel(program, options.parts);
  if (options.plan == "uncut") return program::uncut(program);
  if (options.plan == "published" && family) return program::published_plan(program, *family, options.parts);
  throw InputError(fmt::format("--plan: found '{}'; required eindecomp, data, model, uncut{}", options.plan,
                               family ? ", relational or published" : " or relational"));
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

}  // namespace doppler
