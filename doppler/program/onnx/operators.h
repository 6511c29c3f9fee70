#pragma once

#include <initializer_list>

#include "doppler/program/onnx/constant.h"

// The operator table: everything that reading, costing, cutting and folding a model know about an operator stands in
// its one row in operators.cpp. To add an operator, add a row; a rule that does not exist yet goes into shape_rules.h,
// cost_rules.h, cut_rules.h or fold_rules.h, which know nothing of names.

namespace doppler::program {

struct NodeInputs;
struct TypedNode;
struct Arithmetic;
struct ShapedOp;
struct StencilRule;
struct FoldedNode;

// The shape of the first output where libonnx does not know it; nothing if the inputs do not say.
using ShapeRule = std::optional<Shape> (*)(const onnx::NodeProto& node, const NodeInputs& inputs);
// The arithmetic of a node whose types are complete.
using CostRule = Arithmetic (*)(const TypedNode& node);
// What blocks of an output read; nothing if this node must stay whole after all.
using CutRule = std::optional<StencilRule> (*)(const ShapedOp& op);
// The elements of an output whose inputs are all known; nothing if this node is beyond the rule.
using FoldRule = std::optional<std::vector<double>> (*)(const FoldedNode& node);
// The value of an output that depends on the type of the input only.
using TypeFoldRule = std::optional<Constant> (*)(const onnx::NodeProto& node, const onnx::TypeProto& input);
// True if the output is the first input under another name.
using ViewRule = bool (*)(const onnx::NodeProto& node, const onnx::TypeProto& input);

enum class OperatorClass : std::uint8_t {
  unknown,        // in no row: its cost is the bytes that it reads and writes, and it stays whole
  product,        // of matrices, of kind "matmul"
  convolution,    // of kind "conv"
  recurrent,      // cells that go along a sequence
  attention,      // fused
  elementwise,    // with broadcasting
  normalisation,  // softmax included
  reduction,      // fewer elements come out than go in
  pool,           // windows that slide without weights
  view,           // the first input under another shape or name: nothing is computed or moved
  movement,       // elements are copied, repeated, picked or made, hardly computed
  constant,       // the node is its value
  random,         // another value in every run, so never folded
  branch,         // If
  loop,           // Loop
  scan,           // Scan
};

// Which inputs hold learned tensors. It matters for graph inputs without a value, which may be weights or data.
struct WeightSlots {
  enum class Offer : std::uint8_t {
    anything,
    at_most_matrix,      // a stack of matrices is data
    matrix,              // an embedding table
    vector_beside_data,  // a scale or bias beside a computed tensor
  };
  std::uint32_t slots = 0;  // as bits
  Offer offer = Offer::anything;

  bool contains(int slot) const { return slot < 32 && (slots >> static_cast<unsigned>(slot) & 1) != 0; }
};

// How much of its first input an operator reads.
enum class Reads : std::uint8_t { everything, what_it_writes, nothing };

// How an operator on floats becomes an einsum.
enum class AsEinsum : std::uint8_t { never, product, product_and_bias, equation };

// A standard operator whose first `inputs` inputs decide about shapes just as here, once the attributes that begin with
// `dropped` are taken away.
struct StandardForm {
  std::string_view name = {};  // empty: none
  int inputs = 0;
  std::string_view dropped = {};
};

// What few operators have; the defaults hold for all others.
struct OperatorTraits {
  AsEinsum einsum = AsEinsum::never;
  WeightSlots weights = {};
  bool passes_weights = false;  // what comes out of it is a weight if its first input is
  Reads reads = Reads::everything;
  bool widens = false;         // of static inputs: they are held as they are and widened where they are used
  ViewRule view_if = nullptr;  // a view under this condition
  int axes_input_since = 0;    // the operator set in which `axes`, an attribute before, became the second input
  bool shape_first = false;    // the shape rule knows more than libonnx
  bool gives_floats = false;   // integers come back scaled to floats
  StandardForm standard = {};
  bool each_output = false;  // the cut and fold rules hold for every output, not for the first alone
  bool keeps_elements =
      false;  // the output must have as many elements as the first input, which libonnx does not check
  TypeFoldRule fold_type = nullptr;
};

// A row of the table. Rules may be null: then nothing is known. Kernels have
// a table of their own (kernels/onnx/operators.cpp), which is not part of the command.
struct Operator {
  std::string_view name;  // "Conv", or "com.microsoft.Gelu" outside the standard domain
  OperatorClass is = OperatorClass::unknown;
  ShapeRule shape = nullptr;
  CostRule cost = nullptr;
  CutRule cut = nullptr;
  FoldRule fold = nullptr;
  OperatorTraits traits = {};
};

// Returns the row of a node's operator; that of unknown operators, which has no rules, if there is none.
const Operator& operator_of(const onnx::NodeProto& node);
// Returns all rows, in the order of the table.
std::vector<const Operator*> all_operators();

// Returns "matmul", "conv", or the operator's own name: what a machine's rates and a reader's tables go by.
std::string kind_of(const Operator& op, const onnx::NodeProto& node);
// True if the output is the first input under another shape or name: nothing is computed or moved.
bool is_view(const Operator& op, const onnx::NodeProto& node, const onnx::TypeProto& input);
// Computes the outputs of a node, whose types are known; gives nothing where we do not compute them. Every input is
// known, null where absent.
std::optional<std::vector<Constant>> fold(const Operator& op, const onnx::NodeProto& node,
                                          const std::vector<const Constant*>& inputs,
                                          const std::vector<onnx::TypeProto>& outputs);
// Computes an output that depends on the type of the input only, as a tensor's shape does; gives nothing for most.
std::optional<Constant> fold_type(const Operator& op, const onnx::NodeProto& node, const onnx::TypeProto& input);

}  // namespace doppler::program
