#include "doppler/kernels/onnx/interpreter.h"
#include "doppler/kernels/onnx/operators.h"
#include "doppler/kernels/onnx/primitive.h"

namespace doppler::model {
namespace {

class Library : public KernelLibrary {
 public:
  bool has(const std::string& domain, const std::string& op_type) const override {
    return find_kernel_row(domain, op_type) != nullptr;
  }
  std::vector<std::string> operators() const override { return kernel_row_names(); }

  std::unique_ptr<NodeKernel> make(const KernelNode& node, PackedWeights* packed) const override {
    return checked(node, [&](const KernelRow& row) { return make_widened(row, node, packed); });
  }

  bool needs_value(const KernelNode& node, std::size_t input) const override {
    const KernelRow* row = find_kernel_row(node.domain, node.op_type);
    return row != nullptr && input < 32 && (row->needs_values >> input & 1) != 0;
  }

  std::vector<LayoutChoice> layouts(const KernelNode& node) const override {
    return checked(node, [&](const KernelRow& row) {
      if (row.layouts == nullptr) return std::vector<LayoutChoice>();
      KernelNode plain = node;
      plain.output_layouts.clear();
      for (KernelInput& input : plain.inputs)
        if (input.type) input.type->layout = Layout::row_major;
      return row.layouts(Spec(plain));
    });
  }

  std::unique_ptr<PackedWeights> make_packed_weights() const override { return make_packed_tensors(); }

  Values evaluate(const Node& node, const Values& inputs, const Context& context) const override {
    return model::evaluate_node(*this, node, inputs, context);
  }

  Values evaluate_node(const Node& node, int opset, const Values& inputs) const override {
    const std::map<std::string, int> opsets = {{node.domain, opset}};
    return evaluate(node, inputs, {.opsets = &opsets});
  }

  Values run_model(const ModelBody& model, const std::map<std::string, Value>& inputs) const override {
    Values arguments;
    for (const std::string& name : model.graph.inputs) {
      const auto given = inputs.find(name);
      const auto initial = model.graph.initializers.find(name);
      if (given != inputs.end())
        arguments.push_back(given->second);
      else if (initial != model.graph.initializers.end())
        arguments.emplace_back(initial->second);
      else
        throw InputError(fmt::format("model: found no value of input '{}'; required one", name));
    }
    return run_graph(*this, model.graph, arguments, {&model, &model.opsets, nullptr, 0});
  }

 private:
  // Everything that is wrong with a node is said with its name.
  template <typename Make>
  static std::invoke_result_t<Make, const KernelRow&> checked(const KernelNode& node, Make make) {
    const std::string where = describe(node);
    const KernelRow* row = find_kernel_row(node.domain, node.op_type);
    if (row == nullptr)
      throw InputError(fmt::format("{}: found no kernel for the operator; required one that has", where));
    try {
      for (const KernelInput& input : node.inputs) {
        if (!input.type) continue;
        checked_shape(input.type->shape);
        if (input.constant != nullptr && input.constant->type != *input.type)
          refuse(fmt::format("a constant of {} for {}", to_string(input.constant->type), to_string(*input.type)),
                 "the same");
      }
      return make(*row);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", where, error.what()));
    }
  }
};

}  // namespace

const KernelLibrary& kernel_library() {
  static const Library library;
  return library;
}

}  // namespace doppler::model
