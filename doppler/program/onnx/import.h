#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/graph.h"
#include "doppler/program/cut/decompose.h"

namespace doppler {
class MappedFile;
}
namespace doppler::model {
struct RunnableModel;
}

namespace doppler::program {

struct OnnxOptions {
  // Sizes of symbolic dimensions by name, and of dimension `axis` of a tensor by "tensor:axis".
  std::map<std::string, Index> dims = {};
  // If this is more than 0, everything that can be cut is, in this many blocks; `decompose` says for what machine.
  Index shard = 0;
  DecomposeOptions decompose = {};
  // Whether the devices have one memory. Then blocks are those that kernels compute, and a model that is cut can be run.
  bool one_memory = false;
  // Whether patterns of nodes become fused ones first (rewrite/rewrite.h), also before a model is cut. Without it, one
  // that is cut for devices with memories of their own may also be cut where no kernel follows.
  bool rewrite = false;
  // Whether to keep what running the model takes.
  bool runnable = false;
  // The file that the content lies in, if it does: weights stay there.
  std::shared_ptr<const MappedFile> file = nullptr;
};

// This is what an engineer asks of a model before choosing devices.
struct OnnxTotals {
  Flops flops = 0;
  double macs = 0;       // multiply-adds of matrix products, convolutions and recurrent cells
  Index parameters = 0;  // elements; each counts once however many ops read it
  Bytes parameter_bytes = 0;
  std::size_t nodes = 0, folded_nodes = 0;  // of the file; folded ones cost nothing and are not scheduled
};

// A parameter of a model and the ops that read it, itself or what was computed from it beforehand.
struct OnnxParameter {
  std::string name;
  Bytes bytes = 0;
  std::vector<OpId> readers;  // ascending
};

// What a rewriting pass did, in a few words, and how often.
struct RewriteCount {
  std::string pass;
  std::size_t found = 0;
};

struct ImportedModel {
  Graph graph;
  OnnxTotals totals;
  std::vector<std::string> warnings;
  // Per node of the main graph, in file order: the op that runs it. A view runs with the op that writes what it reads,
  // any other folded node with the first op that needs it. Empty if the model was cut.
  std::vector<OpId> op_of_node;
  // Those that an op reads, in the order of the file. Empty if the model was cut.
  std::vector<OnnxParameter> parameters;
  std::vector<RewriteCount> rewrites = {};                         // empty if there was none to be
  std::shared_ptr<const model::RunnableModel> runnable = nullptr;  // if it was asked for
};

// Tells a model by its first bytes: no text starts like a protobuf with a small integer in field 1.
bool looks_like_onnx(std::string_view content);

// Reads a model: shapes by inference, costs by formula, parameters resident at the ops that read them, everything
// that does not depend on the data folded away. `where` starts every error text. Throws InputError.
ImportedModel import_onnx(const std::string& where, std::string_view content, const OnnxOptions& options = {});

// Returns the model with a metadata property on each node, nodes in bodies included, and further ones of the model
// itself; `device_of_node` is in the order of the file.
std::string annotate_onnx(std::string_view content, const std::vector<std::string>& device_of_node,
                          const std::string& key = "doppler.device",
                          const std::map<std::string, std::string>& model_properties = {});

}  // namespace doppler::program
