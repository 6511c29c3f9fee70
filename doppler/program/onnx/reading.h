#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "doppler/program/onnx/infer.h"
#include "doppler/program/onnx/op_cost.h"

namespace doppler::program {

using ValueId = std::uint32_t;
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// A tensor of the model. Static ones do not depend on the data that is fed in: parameters, shapes, and whatever is
// computed from those alone, once, before the first run.
struct ModelValue {
  std::string name;
  onnx::TypeProto type;
  bool is_static = false;
  std::optional<Constant> constant = std::nullopt;
  Bytes stored = 0;                                // static: what holding it takes
  const onnx::TensorProto* initializer = nullptr;  // of the model, where it is one
  std::vector<std::uint32_t> parameters = {};      // static: those it is made of
  std::uint32_t producer = kNone;                  // the op, unless static or fed in
};

// A node that runs. Views cost nothing and are not scheduled; their readers read through them.
struct ModelOp {
  const onnx::NodeProto* node = nullptr;
  const Operator* rules = nullptr;  // the row of the operator table
  std::string name;
  std::vector<ValueId> inputs, outputs;  // kNone where absent
  OpCost cost;
  int opset = 1;
  bool view = false;
  bool whole = false;  // control flow: nothing is known of what its blocks would read
};

struct ModelParameter {
  std::string name;
  Index elements = 0;
  Bytes bytes = 0;
  bool used = false;  // by an op that runs
};

// A model after reading: shapes, costs, and what is static are known; nothing is placed or cut yet.
struct Reading {
  std::string where;
  onnx::ModelProto model;
  std::deque<onnx::NodeProto> inlined;  // nodes of functions; ops point to them
  std::vector<ModelValue> values;
  std::vector<ModelOp> ops;         // producers first
  std::vector<ModelOp> static_ops;  // likewise: nodes that depend on no data, and run once before the first run
  std::unordered_map<std::string, ValueId> names;  // of the main graph
  std::set<std::string> weights;                   // graph inputs that hold weights
  std::vector<ModelParameter> parameters;
  std::vector<ValueId> outputs;
  struct Range {
    std::uint32_t first = 0, last = 0;
  };
  std::vector<Range> ops_of_node;  // of the main graph, in file order; empty for nodes that were folded
  std::vector<std::string> warnings;
};

// Reads a model. Throws InputError on everything that is wrong with the file or with `dims`, which maps a symbolic
// dimension, or "tensor:axis", to a size.
// If the content is a mapped file, its pages are forgotten once they are read.
Reading read_model(const std::string& where, std::string_view content, const std::map<std::string, Index>& dims,
                   bool mapped = false);
// Reads a model that was read before and has been rewritten since: `weights` says which of its inputs hold weights.
Reading read_again(const std::string& where, onnx::ModelProto model, const std::map<std::string, Index>& dims,
                   std::set<std::string> weights);

// Returns the indices of `nodes`, producers first and otherwise in file order. `is_outer` tells names that are there
// before. Throws InputError naming the node and tensor if a name is dangling, written twice, or part of a cycle.
using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
std::vector<int> sort_nodes(const std::string& where, const Nodes& nodes,
                            const std::function<bool(const std::string&)>& is_outer);
// Returns the names that a node reads, those that its bodies take from outside included.
std::vector<std::string> names_read(const onnx::NodeProto& node);
// Returns the names of the graph inputs without initialiser that only ever feed weight slots.
std::set<std::string> weight_inputs(const onnx::GraphProto& graph);

}  // namespace doppler::program
