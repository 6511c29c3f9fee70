#include "doppler/program/onnx/infer.h"

#include <algorithm>
#include <set>

#include "doppler/program/onnx/equation.h"

namespace doppler::program {
namespace {

using onnx::TypeProto;

// One node as libonnx's inference functions want to see it.
class Context : public onnx::InferenceContext {
 public:
  Context(const onnx::NodeProto& node, const NodeInputs& inputs)
      : node_(node), types_(inputs.types), outputs_(static_cast<std::size_t>(node.output_size())) {
    values_.reserve(inputs.values.size());
    for (const Constant* value : inputs.values)
      values_.push_back(value != nullptr ? std::optional(to_proto(*value)) : std::nullopt);
  }

  std::vector<TypeProto> take_outputs() { return std::move(outputs_); }

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return find_attribute(node_, name);
  }
  std::size_t getNumInputs() const override { return types_.size(); }
  const TypeProto* getInputType(std::size_t index) const override { return types_.at(index); }
  const onnx::TensorProto* getInputData(std::size_t index) const override {
    const auto& value = values_.at(index);
    return value ? &*value : nullptr;
  }
  std::size_t getNumOutputs() const override { return outputs_.size(); }
  TypeProto* getOutputType(std::size_t index) override { return &outputs_.at(index); }
  // Bodies of control flow are walked by the reader itself.
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override { return nullptr; }
  const onnx::SparseTensorProto* getInputSparseData(std::size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(std::size_t) const override { return nullptr; }

 private:
  const onnx::NodeProto& node_;
  std::vector<const TypeProto*> types_;
  std::vector<std::optional<onnx::TensorProto>> values_;
  std::vector<TypeProto> outputs_;
};

// Operator set 18 moved the axes of the reductions from an attribute to an input.
bool reduces_by_input(const onnx::NodeProto& node) {
  static const std::set<std::string, std::less<>> kReductions = {"ReduceL1",        "ReduceL2",   "ReduceLogSum",
                                                                 "ReduceLogSumExp", "ReduceMax",  "ReduceMin",
                                                                 "ReduceMean",      "ReduceProd", "ReduceSumSquare"};
  return node.input_size() == 2 && domain_of(node).empty() && kReductions.contains(node.op_type());
}

struct Adapted {
  onnx::NodeProto node;
  NodeInputs inputs;
  int opset;
};

void drop_attribute(onnx::NodeProto& node, std::string_view name) {
  for (int i = 0; i < node.attribute_size(); ++i)
    if (node.attribute(i).name() == name) node.mutable_attribute()->DeleteSubrange(i--, 1);
}

// The reduction with its axes as an attribute; none are all.
void move_axes(Adapted& adapted) {
  const Constant* axes = adapted.inputs.values[1];
  adapted.node.mutable_input()->RemoveLast();
  adapted.inputs.types.resize(1);
  adapted.inputs.values.resize(1);
  if (axes == nullptr || axes->values.empty()) return;
  auto* attribute = adapted.node.add_attribute();
  attribute->set_name("axes");
  attribute->set_type(onnx::AttributeProto::INTS);
  for (std::size_t i = 0; i < axes->values.size(); ++i) attribute->add_ints(axes->as_index(i));
}

// The node as operator set 17, the last that libonnx 1.12 knows, would have written it. Attributes that came later and
// say nothing about shapes are dropped; nothing where that is not enough.
std::optional<Adapted> as_known_to_libonnx(const onnx::NodeProto& node, int opset, const NodeInputs& inputs) {
  constexpr int kLast = 17;
  if (opset <= kLast || !domain_of(node).empty()) return std::nullopt;
  Adapted adapted{node, inputs, kLast};
  for (const char* name : {"antialias", "saturate", "precision", "block_size", "num_outputs", "noop_with_empty_axes"})
    if (node.op_type() != "ReduceSum" || std::string_view(name) != "noop_with_empty_axes")
      drop_attribute(adapted.node, name);
  if (string_attribute(node, "keep_aspect_ratio_policy", "") == "stretch")
    drop_attribute(adapted.node, "keep_aspect_ratio_policy");
  const bool axes_known = node.input_size() < 2 || node.input(1).empty() || inputs.values[1] != nullptr;
  if (reduces_by_input(node) && axes_known) move_axes(adapted);
  return adapted;
}

void run_libonnx(const onnx::NodeProto& node, int opset, const NodeInputs& inputs, Inferred& result) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, domain_of(node));
  if (schema == nullptr || !schema->has_type_and_shape_inference_function()) return;
  // Verify stands between malformed nodes and inference functions, which trust counts and attribute types.
  try {
    schema->Verify(node);
    Context context(node, inputs);
    schema->GetTypeAndShapeInferenceFunction()(context);
    result.outputs = context.take_outputs();
  } catch (const std::exception& error) {
    result.complaint = error.what();
    std::replace(result.complaint.begin(), result.complaint.end(), '\n', ' ');
  }
}

std::optional<Shape> broadcast(const std::vector<const TypeProto*>& inputs) {
  Shape result;
  for (const TypeProto* input : inputs) {
    if (input == nullptr) continue;
    const std::optional<Shape> dims = dims_of(*input);
    if (!dims) return std::nullopt;
    if (dims->size() > result.size()) result.insert(result.begin(), dims->size() - result.size(), 1);
    const std::size_t skipped = result.size() - dims->size();
    for (std::size_t i = 0; i < dims->size(); ++i) {
      Index& size = result[skipped + i];
      if (size == 1) size = (*dims)[i];
      if (size == kUnknown && (*dims)[i] > 1) size = (*dims)[i];
    }
  }
  return result;
}

// a[…, m, k] · b[…, k, n], either transposed.
std::optional<Shape> matrix_product(Shape a, Shape b, bool transpose_a, bool transpose_b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  if (transpose_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (transpose_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
  const TypeProto batch_a = tensor_type(1, Shape(a.begin(), a.end() - 2));
  const TypeProto batch_b = tensor_type(1, Shape(b.begin(), b.end() - 2));
  std::optional<Shape> result = broadcast({&batch_a, &batch_b});
  result->push_back(a[a.size() - 2]);
  result->push_back(b.back());
  return result;
}

const std::set<std::string, std::less<>>& shaped_as_first_input() {
  static const std::set<std::string, std::less<>> kOperators = {
      // Standard operators that are newer than libonnx 1.12, or whose first versions had no inference.
      "Gelu", "Mish", "Swish", "GroupNormalization", "RMSNormalization", "RotaryEmbedding", "LayerNormalization",
      "BatchNormalization", "Dropout", "Clip", "Elu", "HardSigmoid", "LeakyRelu", "PRelu", "Selu", "Cast", "Relu",
      "Tanh", "Sigmoid", "Exp", "Log", "Sqrt", "Abs", "Neg", "Reciprocal", "Floor", "Ceil", "BitwiseNot", "Attention",
      "TensorScatter", "CumProd", "ThresholdedRelu", "InstanceNormalization",
      // Fused by ONNX Runtime.
      "com.microsoft.Gelu", "com.microsoft.FastGelu", "com.microsoft.BiasGelu", "com.microsoft.QuickGelu",
      "com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization",
      "com.microsoft.LayerNormalization", "com.microsoft.SimplifiedLayerNormalization", "com.microsoft.QLinearSigmoid",
      "com.microsoft.QLinearLeakyRelu", "com.microsoft.QLinearSoftmax", "com.microsoft.RotaryEmbedding",
      "com.microsoft.BiasSoftmax", "com.microsoft.MultiHeadAttention", "com.microsoft.GroupQueryAttention",
      "SimplifiedLayerNormalization", "com.microsoft.QuantizeLinear", "com.microsoft.DequantizeLinear"};
  return kOperators;
}

const std::set<std::string, std::less<>>& broadcasting() {
  static const std::set<std::string, std::less<>> kOperators = {"Add", "Sub",  "Mul",        "Div",       "Pow",
                                                                "Sum", "Mean", "Max",        "Min",       "And",
                                                                "Or",  "Xor",  "BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  return kOperators;
}

// com.microsoft.Attention: the weights are [width, 3·hidden] and the output [batch, positions, hidden].
std::optional<Shape> fused_attention(const NodeInputs& inputs) {
  const std::optional<Shape> data = dims_of(*inputs.types[0]), weights = dims_of(*inputs.types[1]);
  if (!data || data->size() != 3 || !weights || weights->size() != 2) return std::nullopt;
  return Shape{(*data)[0], (*data)[1], (*weights)[1] == kUnknown ? kUnknown : (*weights)[1] / 3};
}

// libonnx finds the rank only.
std::optional<Shape> einsum_output(const onnx::NodeProto& node, const NodeInputs& inputs) {
  std::vector<Shape> shapes;
  for (const TypeProto* type : inputs.types) {
    if (type == nullptr || !is_tensor(*type) || !is_complete(*type)) return std::nullopt;
    shapes.push_back(*dims_of(*type));
  }
  const Equation equation = parse_equation(node, shapes);
  Shape result;
  for (const std::string& label : equation.output) result.push_back(equation.sizes.at(label));
  return result;
}

std::optional<Shape> own_rule(const onnx::NodeProto& node, const NodeInputs& inputs) {
  const std::string name = operator_name(node);
  const auto dims = [&](std::size_t slot) -> std::optional<Shape> {
    return slot < inputs.types.size() && inputs.types[slot] != nullptr ? dims_of(*inputs.types[slot]) : std::nullopt;
  };
  if (name == "Einsum") return einsum_output(node, inputs);
  if (broadcasting().contains(name)) return broadcast(inputs.types);
  if (name == "com.microsoft.QLinearAdd" || name == "com.microsoft.QLinearMul")
    return dims(0) && dims(3) ? broadcast({inputs.types[0], inputs.types[3]}) : std::nullopt;
  if (shaped_as_first_input().contains(name)) return dims(0);
  if (name == "com.microsoft.FusedMatMul" && dims(0) && dims(1))
    return matrix_product(*dims(0), *dims(1), int_attribute(node, "transA", 0) != 0,
                          int_attribute(node, "transB", 0) != 0);
  if (name == "com.microsoft.FusedGemm" && dims(0) && dims(1))
    return matrix_product(*dims(0), *dims(1), int_attribute(node, "transA", 0) != 0,
                          int_attribute(node, "transB", 0) != 0);
  if (name == "com.microsoft.DynamicQuantizeMatMul" && dims(0) && dims(1))
    return matrix_product(*dims(0), *dims(1), false, false);
  if (name == "com.microsoft.MatMulIntegerToFloat" && dims(0) && dims(1))
    return matrix_product(*dims(0), *dims(1), false, false);
  if (name == "com.microsoft.Attention" && inputs.types.size() > 1 && dims(0) && dims(1))
    return fused_attention(inputs);
  if (name == "com.microsoft.MatMulNBits" && dims(0) && !dims(0)->empty()) {
    Shape result = *dims(0);
    result.back() = int_attribute(node, "N", kUnknown);
    return result;
  }
  return std::nullopt;
}

// Integer products that come back scaled to floats.
bool gives_floats(const std::string& name) {
  return name == "com.microsoft.DynamicQuantizeMatMul" || name == "com.microsoft.MatMulIntegerToFloat";
}

// Two of ONNX Runtime's operators are standard ones with more behind them: an activation, or quantised weights.
std::optional<onnx::NodeProto> as_standard(const onnx::NodeProto& node) {
  const std::string name = operator_name(node);
  const bool conv = name == "com.microsoft.FusedConv";
  if (!conv && name != "com.microsoft.DynamicQuantizeLSTM") return std::nullopt;
  onnx::NodeProto standard = node;
  standard.set_op_type(conv ? "Conv" : "LSTM");
  standard.clear_domain();
  const int inputs = conv ? 3 : 8;
  if (standard.input_size() > inputs) standard.mutable_input()->DeleteSubrange(inputs, standard.input_size() - inputs);
  for (int i = 0; i < standard.attribute_size() && conv; ++i)
    if (standard.attribute(i).name().starts_with("activation")) standard.mutable_attribute()->DeleteSubrange(i--, 1);
  return standard;
}

}  // namespace

Inferred infer_types(const onnx::NodeProto& node, int opset, const NodeInputs& inputs) {
  Inferred result;
  constexpr int kStandardVersion = 11;
  if (const auto standard = as_standard(node)) {
    NodeInputs first = inputs;
    first.types.resize(static_cast<std::size_t>(standard->input_size()));
    first.values.resize(first.types.size());
    run_libonnx(*standard, kStandardVersion, first, result);
  } else if (const auto adapted = as_known_to_libonnx(node, opset, inputs); adapted) {
    run_libonnx(adapted->node, adapted->opset, adapted->inputs, result);
  } else {
    run_libonnx(node, opset, inputs, result);
  }
  result.outputs.resize(static_cast<std::size_t>(node.output_size()));
  if (result.outputs.empty() || inputs.types.empty() || inputs.types[0] == nullptr) return result;
  TypeProto& first = result.outputs[0];
  if (is_tensor(first) && dims_of(first) && operator_name(node) != "Einsum") return result;
  if (first.value_case() != TypeProto::VALUE_NOT_SET && !is_tensor(first)) return result;
  if (const std::optional<Shape> dims = own_rule(node, inputs)) {
    std::int32_t element = is_tensor(first) ? element_of(first) : 0;
    if (element == 0)
      element = gives_floats(operator_name(node)) ? static_cast<std::int32_t>(onnx::TensorProto::FLOAT)
                                                  : element_of(*inputs.types[0]);
    first = tensor_type(element, dims);
  }
  return result;
}

}  // namespace doppler::program
