#include "doppler/kernels/onnx/layout_plan.h"

#include <algorithm>

namespace doppler::model {
namespace {

bool slides(const std::string& op_type) {
  return op_type.find("Conv") != std::string::npos || op_type.find("Pool") != std::string::npos;
}

bool is_blocked(const LayoutChoice& choice) {
  const auto any = [](const std::vector<Layout>& layouts) {
    return std::any_of(layouts.begin(), layouts.end(),
                       [](Layout layout) { return layout == Layout::blocked8 || layout == Layout::blocked16; });
  };
  return any(choice.inputs) || any(choice.outputs);
}

}  // namespace

bool same_bytes(const TensorType& type, Layout a, Layout b) {
  if (a == b || type.shape.size() < 3) return true;
  Index space = 1;
  for (std::size_t i = 2; i < type.shape.size(); ++i) space *= type.shape[i];
  const bool blocked =
      a == Layout::blocked8 || a == Layout::blocked16 || b == Layout::blocked8 || b == Layout::blocked16;
  return space == 1 || (type.shape[1] == 1 && !blocked);
}

LayoutPlan plan_layouts(const RunnableModel& model, const std::vector<std::uint32_t>& order,
                        const std::vector<KernelNode>& nodes, const KernelLibrary& library, bool blocked) {
  LayoutPlan plan;
  plan.of_value.assign(model.values.size(), Layout::row_major);
  plan.of_inputs.resize(model.ops.size());
  // Returns how many inputs of the op, and of how many bytes, are reordered for these layouts.
  struct Price {
    std::size_t inputs = 0, bytes = 0;
  };
  const auto price_of = [&](const RunnableModel::Op& op, const std::vector<Layout>& layouts) {
    Price price;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == kAbsent) continue;
      const RunnableModel::Value& value = model.values[op.inputs[i]];
      const ValueIndex source = model.source_of(op.inputs[i]);
      if (model.values[source].origin != RunnableModel::Origin::op &&
          model.values[source].origin != RunnableModel::Origin::input)
        continue;  // reordered once
      const Layout wanted = i < layouts.size() ? layouts[i] : Layout::row_major;
      const bool view = source != op.inputs[i];
      const auto charge = [&](const TensorType& type, Layout from, Layout to) {
        if (same_bytes(type, from, to)) return;
        ++price.inputs;
        price.bytes += type.bytes();
      };
      charge(model.values[source].type, plan.of_value[source], view ? Layout::row_major : wanted);
      if (view) charge(value.type, Layout::row_major, wanted);
    }
    return price;
  };
  for (const std::uint32_t index : order) {
    const RunnableModel::Op& op = model.ops[index];
    std::vector<LayoutChoice> choices;
    if (library.has(op.node.domain, op.node.op_type)) choices = library.layouts(nodes[index]);
    if (!blocked) std::erase_if(choices, is_blocked);
    const auto reads_rows = [](const LayoutChoice& choice) {
      return choice.inputs.empty() || choice.inputs[0] == Layout::row_major;
    };
    // Reordering what a convolution reads takes less time than reading it row-major.
    if (slides(op.node.op_type) && !std::all_of(choices.begin(), choices.end(), reads_rows))
      std::erase_if(choices, reads_rows);
    if (choices.empty() || !slides(op.node.op_type)) choices.push_back({});
    const auto cheaper = [&](const LayoutChoice& a, const LayoutChoice& b) {
      return price_of(op, a.inputs).bytes < price_of(op, b.inputs).bytes;
    };
    const LayoutChoice& best = *std::min_element(choices.begin(), choices.end(), cheaper);
    plan.reorders += price_of(op, best.inputs).inputs;
    plan.of_inputs[index] = best.inputs;
    plan.of_inputs[index].resize(op.inputs.size(), Layout::row_major);
    for (std::size_t i = 0; i < op.outputs.size() && i < best.outputs.size(); ++i)
      if (op.outputs[i] != kAbsent) plan.of_value[op.outputs[i]] = best.outputs[i];
  }
  return plan;
}

}  // namespace doppler::model
