#pragma once

// From a file to a problem: graphs, models and programs in every format of docs/formats.md.
//
//   doppler::Machine machine = doppler::load_machine("v100x4");
//   doppler::LoadedProblem model = doppler::load_problem("model.onnx", machine, {.dims = {{"batch", 8}}, .shard = 4});
//   for (const std::string& warning : model.file.warnings) std::cerr << warning << "\n";
//   doppler::place(model.problem);
//
// Limits. A model that is cut (shard) runs on devices of one memory (Links::shared); for others it gives costs alone. The
// machine decides how a program or model is cut, so load it anew for another machine.

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "doppler/problem.h"

namespace doppler {

struct OnnxFile;

// Which ops stay together on one device, whatever a method would do.
enum class Granularity : std::uint8_t {
  op,      // those that the graph says: its colocation groups
  module,  // ops of one module, by names such as "/layers.0/attention/MatMul"
  layer,   // ops of one repeated block, such as layers.0; outside of blocks as `module`
};
std::string_view to_string(Granularity granularity);
Granularity parse_granularity(std::string_view text);  // throws InputError

// How a file becomes a problem.
struct LoadOptions {
  static constexpr std::uint32_t kAutoShard = std::numeric_limits<std::uint32_t>::max();

  Rules rules = {};
  std::optional<Links> links = std::nullopt;  // none: as the machine says, whatever `rules` says
  // "op=device", by names; a device also by its number, an op also by a pattern such as "layers.0*" or a module.
  std::vector<std::string> pins = {};
  bool repair = false;                            // fix the known damage of the published graphs instead of warning
  std::map<std::string, std::int64_t> dims = {};  // ONNX: sizes of symbolic dimensions
  // ONNX: cut every op in at most this many blocks; 0: ops stay whole. kAutoShard is for place_file() alone, which tries.
  std::uint32_t shard = 0;
  Granularity granularity = Granularity::op;
  std::vector<std::string> times = {};  // files with measured times of ops (docs/profiles.md), for their device types
  // ONNX: fuse nodes first, as an engine runs them, also before a model is cut. Without it, a model that is cut for
  // devices with memories of their own may also be cut where no kernel follows.
  bool rewrite = true;
  bool runnable = false;  // keep what running a program or model takes; takes as long as lowering it
};

// What a file says, whatever its format: a graph, and the program that it was lowered from if there is one.
struct GraphFile {
  std::string path;    // or another name: it starts texts
  std::string format;  // "native", "published", "stg", "wfcommons", "dnn-partitioning", "onnx", "ein"
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const program::RunnableProgram> program;  // null: none, or not asked for
  std::shared_ptr<const model::RunnableModel> model;  // null: no ONNX model, one that cannot be run, or not asked for
  bool has_program = false;                           // the file carries one
  std::shared_ptr<const OnnxFile> onnx;               // null: the file is no ONNX model
  std::vector<std::string> warnings;                  // what the user should know, one line each
};

// Reads a file in any format of docs/formats.md, by content; "-" is standard input. A program is cut for `machine`, one
// part per device, and a model if options.shard asks for it; null: no machine decides. Throws InputError.
GraphFile read_graph_file(const std::string& path, const Machine* machine, const LoadOptions& options = {});
// The same for what is in memory already; `path` starts texts.
GraphFile parse_graph_file(const std::string& path, std::string content, const Machine* machine,
                           const LoadOptions& options = {});

// Puts the file on a machine. Throws InputError and InfeasibleError as Problem does, and InputError for a wrong pin.
Problem make_problem(const GraphFile& file, const Machine& machine, const LoadOptions& options = {});

// The front half of the pipeline: path, machine and rules in, problem out. Throws as read_graph_file() and
// make_problem() do.
struct LoadedProblem {
  GraphFile file;
  Problem problem;
};
LoadedProblem load_problem(const std::string& path, const Machine& machine, const LoadOptions& options = {});

}  // namespace doppler
