#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/loading.h"
#include "doppler/app/programs.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/native_json.h"

namespace doppler {
namespace {

struct LowerVerb : ProgramOptions {
  std::string path;
  std::vector<std::string> dims;
  bool quiet = false;
};

void lower_program(const LowerVerb& options, const std::string& text) {
  if (!options.dims.empty()) throw InputError(fmt::format("{}: --dim is for ONNX models; required one", options.path));
  const program::EinProgram model = program::parse_ein(options.path, text);
  train_if_asked(*model.program, model.loss, options);
  write_lowered(*model.program, std::nullopt, options.path, options);
}

void lower_model(const LowerVerb& options, std::string content) {
  const bool whole = options.plan == "uncut";
  if (!whole && options.plan != "eindecomp")
    throw InputError(fmt::format("--plan: found '{}' for an ONNX model; required eindecomp or uncut", options.plan));
  if (!options.train.empty() || options.costs != "per-block")
    throw InputError(fmt::format("{}: found --{} for an ONNX model; required a program (.ein)", options.path,
                                 options.train.empty() ? "costs" : "train"));
  if (options.parts < 1) throw InputError("--parts: found 0; required at least 1");
  Options loading;
  loading.dims = options.dims;
  loading.shard = whole ? "" : std::to_string(options.parts);
  std::optional<Machine> machine;
  if (!options.machine.empty()) machine = load_machine(options.machine);
  const GraphFile file =
      parse_graph_file(options.path, std::move(content), machine ? &*machine : nullptr, load_options(loading));
  if (!options.quiet) warn(file);
  write_file_atomically(options.output, graph_to_json(*file.graph));
}

}  // namespace

void add_lower(CLI::App& command) {
  auto options = std::make_shared<LowerVerb>();
  CLI::App* verb = command.add_subcommand("lower", "Turn a program (.ein) or an ONNX model into a graph of blocks");
  verb->add_option("program", options->path,
                   "A program (docs/programs.md) or a model (docs/onnx.md); - is standard input")
      ->required();
  add_program_flags(*verb, *options);
  add_lowering_flags(*verb, *options);
  add_dim_flag(*verb, options->dims);
  verb->add_flag("-q,--quiet", options->quiet, "No warnings on standard error");
  verb->footer("Example:\n  doppler lower examples/attention.ein --parts 4 -o graph.json");
  verb->callback([options] {
    check_outputs({options->path, options->machine}, {{"-o", options->output}});
    const std::string content = read_file(options->path);
    program::looks_like_onnx(content) ? lower_model(*options, content) : lower_program(*options, content);
  });
}

}  // namespace doppler
