#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "doppler/program/lower/lower.h"

namespace doppler::program {

// A program with its cuts as JSON text (docs/formats.md), so that it can travel in the file of its graph and an engine
// can run that. `options` are those that lowered it; the title is the graph's. Empty if the program has expressions
// without values: those of imported models.
std::string program_to_json(const Program& program, const Plan& plan, const LowerOptions& options);

struct RunnableProgram {
  std::shared_ptr<Program> program;
  Plan plan;
  LowerOptions options;
  Lowered lowered;
};

// What program_to_json wrote, lowered again. Throws InputError if the text is no program, or if `graph`, with which it
// came, is not what the program lowers to: names, tensors, bytes and consumers. `where` starts every error text.
RunnableProgram load_program(const std::string& where, std::string_view text, const Graph& graph);

}  // namespace doppler::program
