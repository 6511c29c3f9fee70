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
  if (options.parts < 1) throw InputError("--parts: found 0; required at least 1");
  program::DecomposeOptions result{.parts = options.parts};
  if (options.machine.empty()) return result;
  const Machine machine = load_machine(options.machine);
  result.speeds = speeds_of(machine);
  result.devices = machine.device_count();
  return result;
}

program::Plan make_plan(const Program& program, const std::string& name, const program::DecomposeOptions& decomposing,
                        std::optional<program::Family> family) {
  if (name == "eindecomp") return program::decompose(program, decomposing)[0].plan;
  if (name == "relational") return program::relational_plan(program, decomposing).plan;
  if (name == "data") return program::data_parallel(program, decomposing.parts);
  if (name == "model") return program::model_parallel(program, decomposing.parts);
  if (name == "uncut") return program::uncut(program);
  if (name == "published" && family) return program::published_plan(program, *family, decomposing.parts);
  throw InputError(fmt::format("--plan: found '{}'; required eindecomp, data, model, uncut{}", name,
                               family ? ", relational or published" : " or relational"));
}

void train_if_asked(Program& program, std::optional<program::ExprId> loss, const ProgramOptions& options) {
  if (options.train.empty()) return;
  const program::Optimizer optimizer = program::parse_optimizer(options.train);
  if (!loss) throw InputError("--train: found no loss; required a statement 'loss name'");
  program::add_training_step(program.expr(*loss), optimizer);
}

void write_lowered(const Program& program, std::optional<program::Family> family, const std::string& title,
                   const ProgramOptions& options) {
  const program::DecomposeOptions decomposing = decompose_options(options);
  const program::Plan plan = make_plan(program, options.plan, decomposing, family);
  const program::LowerOptions lowering{
      .costs = program::parse_cost_mode(options.costs), .speeds = decomposing.speeds, .title = title};
  write_file_atomically(options.output, graph_to_json(program::lower(program, plan, lowering).graph,
                                                      program::program_to_json(program, plan, lowering)));
}

program::EinProgram read_ein(const std::string& path) { return program::parse_ein(path, read_file(path)); }

}  // namespace doppler
