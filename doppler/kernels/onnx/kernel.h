#pragma once

#include <span>

#include "doppler/program/onnx/node_evaluator.h"

// What the operators of ONNX models compute. A kernel is made once per node, from everything that is known before the
// first run: types, shapes, layouts, constants. Making it checks the node, so that running it needs no checks but those
// of data (indices); it chooses primitives, packs weights and says how much scratch memory a run takes.
//
//   KernelNode node{.name = "conv1", .op_type = "Conv", .opset = 17, .attributes = …,
//                   .inputs = {{x_type}, {w_type, &weights}}};
//   std::unique_ptr<NodeKernel> kernel = kernels.make(node);
//   kernel->run(inputs, outputs, scratch);      // pointers to memory of kernel->inputs() and kernel->outputs()
//
// Besides ONNX's own operators and those of com.microsoft that ONNX Runtime writes, there are fused forms in the domain
// "doppler", for rewrites to ask for:
//   Conv     as ONNX's, with inputs X, W, bias, residual (the last two may be absent) and an activation
//   MatMul   A · B · alpha + bias + residual, activation. Attributes transA, transB (of the last two dimensions),
//            transBatchA, transBatchB (of all but the last: [S, batch…, K] is read as [batch…, S, K]), alpha. bias is
//            a vector along the last dimension, residual has the shape of the output
//   SkipLayerNormalization  X, skip, scale, bias (may be absent), added_bias (may be absent); attributes axis (-1) and
//            epsilon; outputs the normalised sum of X, skip and added_bias, and the sum itself if asked for
//   Attention  softmax(scale · Q · Kᵀ + mask) · V of [batch, heads, rows, depth]; attributes scale (1) and perm_q,
//            perm_k, perm_v, which are Transposes of the inputs, and perm_out, one of the output. mask, which may be
//            absent, is broadcast to [batch, heads, rows of Q, rows of K]
//   Gelu     attribute approximate: "none" (erf) or "tanh"
//   Silu     x · sigmoid(x)
//   Reorder  the input in the layout of the output
// An activation is the attribute `activation`: Relu, Clip, LeakyRelu, HardSigmoid, HardSwish, Sigmoid, Silu, Tanh,
// Gelu, GeluTanh, Elu or Softplus, with `activation_params` (Clip: low, high; LeakyRelu: alpha; HardSigmoid: alpha,
// beta; Elu: alpha).

namespace doppler::model {

struct KernelInput {
  std::optional<TensorType> type = std::nullopt;  // none: the input is absent
  const Tensor* constant = nullptr;               // its value, if known; outlives the kernel
};

// A node whose inputs have types: what a kernel is made from.
struct KernelNode {
  std::string name;  // for errors
  std::string op_type;
  std::string domain = {};
  int opset = 17;
  Attributes attributes = {};
  std::vector<KernelInput> inputs = {};
  std::vector<bool> outputs_used = {true};  // false where an output is absent
  std::vector<Layout> output_layouts = {};  // row_major where it ends
};

class NodeKernel {
 public:
  virtual ~NodeKernel() = default;

  // Returns the types of the outputs; of one that is not used the element type is `none`.
  const std::vector<TensorType>& outputs() const { return outputs_; }
  // Returns whether run() looks at the input. It does not where the kernel has packed a constant or used it up.
  bool reads(std::size_t input) const { return input < reads_.size() && reads_[input]; }
  // Returns the bytes that run() needs for itself, on a boundary of 64 bytes.
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  // Returns whether output 0 may have the memory of this input.
  bool in_place(std::size_t input) const { return input < 32 && (in_place_ >> input & 1) != 0; }
  // Returns who computes, for tables and tests: "onednn brgconv:avx512_core", "own".
  const std::string& implementation() const { return implementation_; }

  // Computes the outputs. Pointers of inputs that are absent or not read, and of outputs that are not used, are null.
  // Several threads may run one kernel at the same time, each with scratch memory of its own; each uses one thread.
  // Nothing is allocated. Throws InputError naming the node if the data is wrong: an index outside of its tensor.
  virtual void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                   std::byte* scratch) const = 0;

 protected:
  std::vector<TensorType> outputs_;
  std::vector<bool> reads_;
  std::size_t scratch_bytes_ = 0;
  std::uint32_t in_place_ = 0;
  std::string implementation_ = "own";
};

// Weights in the formats that kernels want, so that kernels of blocks of one node share them. Weights are told apart by
// their address. Several threads may use it.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  virtual std::size_t bytes() const = 0;
};

// A way in which a kernel can have its tensors laid out. Inputs beyond the list are row-major.
struct LayoutChoice {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

class KernelLibrary : public NodeEvaluator {
 public:
  // Returns whether there are kernels of the operator: its type and domain alone.
  virtual bool has(const std::string& domain, const std::string& op_type) const = 0;
  // Returns the names of all operators that have kernels: "Conv", "com.microsoft.Gelu", in order.
  virtual std::vector<std::string> operators() const = 0;

  // Makes a kernel. Throws InputError if there is none for the operator or its types, if attributes or shapes are
  // wrong, and if the shape of an output depends on an input that is no constant (needs_value()).
  virtual std::unique_ptr<NodeKernel> make(const KernelNode& node, PackedWeights* packed = nullptr) const = 0;
  // Returns whether the shape of an output depends on the value of this input, which then has to be a constant: the
  // target of a Reshape, the elements of a NonZero. Where it is not known before the run, evaluate() the node.
  virtual bool needs_value(const KernelNode& node, std::size_t input) const = 0;
  // Returns the layouts that the node can have besides row-major ones, the fastest first; the types of the inputs are
  // taken as row-major.
  virtual std::vector<LayoutChoice> layouts(const KernelNode& node) const = 0;
  virtual std::unique_ptr<PackedWeights> make_packed_weights() const = 0;

  // Computes the outputs of a node from values: for folding, for shapes that depend on data, for sequences and control
  // flow, whose bodies see the names of `outer` (may be null). Sizes, attributes and values are checked on the way.
  struct Outer {
    virtual ~Outer() = default;
    virtual const Value* find(const std::string& name) const = 0;
  };
  struct Context {
    const ModelBody* model = nullptr;                    // its functions; may be null
    const std::map<std::string, int>* opsets = nullptr;  // by domain; 17 if null
    const Outer* outer = nullptr;                        // what bodies see around them
    int depth = 0;                                       // of calls of functions
  };
  virtual std::vector<Value> evaluate(const Node& node, const std::vector<Value>& inputs,
                                      const Context& context) const = 0;
  // Runs a model node by node, on the calling thread: the reference that every other way to run it is compared with.
  virtual std::vector<Value> run_model(const ModelBody& model, const std::map<std::string, Value>& inputs) const = 0;
};

// Returns the kernels, which are linked into whoever calls this: tests, benchmarks and the module doppler_models.
const KernelLibrary& kernel_library();
// Returns the kernels of the module doppler_models, opened on demand: oneDNN and all kernels together take long to
// compile and to load, and most verbs have no use for them. Throws InputError if the module is not there.
const KernelLibrary& open_kernel_library();

}  // namespace doppler::model
