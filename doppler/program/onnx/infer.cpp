#include "doppler/program/onnx/infer.h"

#include <algorithm>

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
  // The model reader reads the bodies of control flow itself.
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override { return nullptr; }
  const onnx::SparseTensorProto* getInputSparseData(std::size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(std::size_t) const override { return nullptr; }

 private:
  const onnx::NodeProto& node_;
  std::vector<const TypeProto*> types_;
  std::vector<std::optional<onnx::TensorProto>> values_;
  std::vector<TypeProto> outputs_;
};

struct Adapted {
  onnx::NodeProto node;
  NodeInputs inputs;
  int opset;
};

void drop_attribute(onnx::NodeProto& node, std::string_view name) {
  for (int i = 0; i < node.attribute_size(); ++i)
    if (node.attribute(i).name() == name) node.mutable_attribute()->DeleteSubrange(i--, 1);
}

// Writes the axes of a reduction as an attribute; no axes are all of them.
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

// Returns the node as operator set 17, the last that libonnx 1.12 knows, would have written it: attributes that came
// later and say nothing about shapes are dropped. Returns nothing for nodes that are old enough as they are.
std::optional<Adapted> as_known_to_libonnx(const Operator& op, const onnx::NodeProto& node, int opset,
                                           const NodeInputs& inputs) {
  constexpr int kLast = 17;
  const int axes_since = op.traits.axes_input_since;
  if (opset <= kLast || !domain_of(node).empty()) return std::nullopt;
  Adapted adapted{node, inputs, kLast};
  for (const char* name : {"antialias", "saturate", "precision", "block_size", "num_outputs", "noop_with_empty_axes"})
    if (axes_since == 0 || axes_since > kLast || std::string_view(name) != "noop_with_empty_axes")
      drop_attribute(adapted.node, name);
  if (string_attribute(node, "keep_aspect_ratio_policy", "") == "stretch")
    drop_attribute(adapted.node, "keep_aspect_ratio_policy");
  const bool axes_known = node.input_size() < 2 || node.input(1).empty() || inputs.values[1] != nullptr;
  if (axes_since > kLast && node.input_size() == 2 && axes_known) move_axes(adapted);
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

// Returns the standard operator that the row names, without what comes on top: an activation, or quantised weights.
std::optional<onnx::NodeProto> as_standard(const Operator& op, const onnx::NodeProto& node) {
  const auto& [name, inputs, dropped] = op.traits.standard;
  if (name.empty()) return std::nullopt;
  onnx::NodeProto standard = node;
  standard.set_op_type(std::string(name));
  standard.clear_domain();
  if (standard.input_size() > inputs) standard.mutable_input()->DeleteSubrange(inputs, standard.input_size() - inputs);
  for (int i = 0; i < standard.attribute_size() && !dropped.empty(); ++i)
    if (standard.attribute(i).name().starts_with(dropped)) standard.mutable_attribute()->DeleteSubrange(i--, 1);
  return standard;
}

}  // namespace

Inferred infer_types(const Operator& op, const onnx::NodeProto& node, int opset, const NodeInputs& inputs) {
  Inferred result;
  constexpr int kStandardVersion = 11;
  if (const auto standard = as_standard(op, node)) {
    NodeInputs first = inputs;
    first.types.resize(static_cast<std::size_t>(standard->input_size()));
    first.values.resize(first.types.size());
    run_libonnx(*standard, kStandardVersion, first, result);
  } else if (const auto adapted = as_known_to_libonnx(op, node, opset, inputs); adapted) {
    run_libonnx(adapted->node, adapted->opset, adapted->inputs, result);
  } else {
    run_libonnx(node, opset, inputs, result);
  }
  result.outputs.resize(static_cast<std::size_t>(node.output_size()));
  if (op.shape == nullptr || result.outputs.empty() || inputs.types.empty() || inputs.types[0] == nullptr)
    return result;
  TypeProto& first = result.outputs[0];
  if (is_tensor(first) && dims_of(first) && !op.traits.shape_first) return result;
  if (first.value_case() != TypeProto::VALUE_NOT_SET && !is_tensor(first)) return result;
  if (const std::optional<Shape> dims = op.shape(node, inputs)) {
    std::int32_t element = is_tensor(first) ? element_of(first) : 0;
    if (element == 0)
      element =
          op.traits.gives_floats ? static_cast<std::int32_t>(onnx::TensorProto::FLOAT) : element_of(*inputs.types[0]);
    first = tensor_type(element, dims);
  }
  return result;
}

}  // namespace doppler::program
