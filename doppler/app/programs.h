#pragma once

#include <string>

#include "doppler/app/flags/options.h"
#include "doppler/problem/graph_files.h"
#include "doppler/program/cut/decompose.h"
#include "doppler/program/expr/autodiff.h"
#include "doppler/program/expr/workloads.h"
#include "doppler/program/text/ein_text.h"

namespace CLI {
class App;
}  // namespace CLI

namespace doppler {

// How a program becomes a graph: the flags that `lower`, `explain` and the program families of `generate`
// share.
struct ProgramOptions {
  std::uint32_t parts = 4;
  std::string plan = "eindecomp";
  std::string costs = "per-block";
  std::string train;    // empty: no training step
  std::string machine;  // empty: the default of program::Speeds
  std::string output = "-";
};
void add_program_flags(CLI::App& verb, ProgramOptions& options);
void add_lowering_flags(CLI::App& verb, ProgramOptions& options);  // --costs -o

// What the machine decides of a plan. Reads the machine, so a verb asks once.
program::DecomposeOptions decompose_options(const ProgramOptions& options);

// Makes the plan that --plan names. `family` is what published boxes are known for; none for programs of users.
program::Plan make_plan(const program::Program& program, const std::string& name,
                        const program::DecomposeOptions& decomposing, std::optional<program::Family> family);
// Adds the training step if one is asked for. Throws InputError without a loss.
void train_if_asked(program::Program& program, std::optional<program::ExprId> loss, const ProgramOptions& options);
// Cuts, lowers and writes.
void write_lowered(const program::Program& program, std::optional<program::Family> family, const std::string& title,
                   const ProgramOptions& options);

program::EinProgram read_ein(const std::string& path);

// Adds chainmm, ffnn, llama-block, llama-layer and llama to `generate`.
void add_program_families(CLI::App& generate);
// Adds the ONNX models of the zoo to it.
void add_model_families(CLI::App& generate);

}  // namespace doppler
