#pragma once

#include <limits>

#include "doppler/program/onnx/graph_body.h"

namespace doppler::model {

using ValueIndex = std::uint32_t;
inline constexpr ValueIndex kAbsent = std::numeric_limits<ValueIndex>::max();

// A model as an engine runs it: the ops of the graph that was placed, what each of them reads, and what has to be
// computed once before the first run. It knows nothing of ONNX's own headers, and of weights only where they are.
struct RunnableModel {
  // Where a value comes from.
  enum class Origin : std::uint8_t {
    op,       // an op of the graph writes it in every run
    input,    // it is fed in
    weight,   // a weight that the file does not have
    held,     // `tensor` has it
    computed  // a node that depends on no data writes it, once
  };
  struct Value {
    std::string name;
    TensorType type = {};  // without an element type if kernels know none such: text, sequences
    Origin origin = Origin::op;
    ValueIndex view_of = kAbsent;  // the value whose elements this one has under another shape
    Tensor tensor = {};
    bool mapped = false;  // the tensor lies in a mapped file, so that its pages may be forgotten
    Index inner = 1;  // of a weight: how many products the first op that reads it adds up, for values that stay finite
  };
  struct Op {
    Node node;
    int opset = 1;
    std::vector<ValueIndex> inputs, outputs;  // kAbsent where there is none; inputs go on with what bodies read
    bool has_body = false;                    // control flow
  };

  // A part of an op that runs by itself, where the model is cut: some elements of one output, or the whole op.
  struct Block {
    std::uint32_t op = 0;
    std::uint32_t output = kAbsent;  // kAbsent: the op is not cut, and the block writes all outputs
    program::Rect region = {};       // of the output
    // By input: what the block reads of it, all of it where the list ends. Empty ones are not there (of a Concat).
    std::vector<program::Rect> inputs = {};
  };

  std::string where;  // starts texts
  std::map<std::string, int> opsets;
  std::vector<Value> values;
  std::vector<Op> ops;         // by op of the graph, unless the model is cut
  std::vector<Block> blocks;   // by op of the graph, if the model is cut; empty otherwise
  std::vector<Op> static_ops;  // producers first
  std::vector<ValueIndex> outputs;
  std::vector<std::string> output_names;

  // Returns the value that `value` is a view of in the end: itself if it is none.
  ValueIndex source_of(ValueIndex value) const;
  // Returns the input of that name; kAbsent if there is none. Weights that the file does not have are inputs too.
  ValueIndex find_input(std::string_view name) const;
};

}  // namespace doppler::model
