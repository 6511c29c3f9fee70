#pragma once

#include <memory>
#include <string>
#include <vector>

#include "doppler/load.h"
#include "doppler/program/lower/lower.h"
#include "doppler/program/onnx/import.h"
#include "doppler/program/text/program_json.h"

namespace doppler {

// What an ONNX model has beside its graph.
struct OnnxFile {
  program::OnnxTotals totals;
  std::vector<OpId> op_of_node;                 // as program::ImportedModel has it
  std::vector<program::RewriteCount> rewrites;  // likewise
  std::string content;                          // empty if the model is to be run: it may be large
  std::vector<program::OnnxParameter> parameters = {};

  std::vector<std::string> parameter_names() const;
};

// Returns a program that is in memory as if it had been read.
GraphFile lower_to_file(std::string name, std::shared_ptr<program::Program> program, program::Plan plan,
                        program::LowerOptions options);

// Returns what cutting a program needs to know of a machine: the first device and its link to the second. Throws
// InputError if the machine has no compute rates.
program::Speeds speeds_of(const Machine& machine, std::optional<Links> links = {});

}  // namespace doppler
