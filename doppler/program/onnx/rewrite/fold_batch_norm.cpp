#include "doppler/program/onnx/rewrite/passes.h"

namespace doppler::program {

// scale · (W ∗ x + b - mean) / √(variance + ε) + shift is a convolution with the weights W · f and the bias
// shift - f · (mean - b), where f = scale / √(variance + ε) is a number per output channel.
std::size_t fold_batch_norm(Rewriting& graph) {
  constexpr int kBroadcasts = 7;  // the operator set from which on arithmetic broadcasts as it does today
  constexpr std::int32_t kFloat = onnx::TensorProto::FLOAT;
  std::size_t found = 0;
  if (graph.opset() < kBroadcasts) return 0;
  for (NodeIndex index = 0; index < graph.size(); ++index) {
    if (!graph.is(index, "BatchNormalization")) continue;
    const onnx::NodeProto norm = graph.node(index);
    const auto conv = graph.sole_writer(norm.input(0), "Conv");
    if (!conv || norm.input_size() != 5 || norm.output_size() != 1 || int_attribute(norm, "training_mode", 0) != 0)
      continue;
    onnx::NodeProto fused = graph.node(*conv);
    const std::string weights = fused.input(1), bias = fused.input_size() > 2 ? fused.input(2) : std::string();
    const auto shape = graph.shape(weights);
    bool fits = graph.is_static(weights) && graph.element(weights) == kFloat && shape && shape->size() > 2 &&
                (bias.empty() || graph.is_static(bias));
    for (int slot = 1; slot < 5; ++slot)
      fits = fits && graph.is_static(norm.input(slot)) && graph.element(norm.input(slot)) == kFloat;
    if (!fits) continue;
    const Shape channels = {(*shape)[0]};
    const auto arithmetic = [&](const std::string& op, const std::vector<std::string>& inputs) {
      return graph.add_static(op, inputs, channels, kFloat);
    };
    const std::string epsilon = graph.add_scalar(float_attribute(norm, "epsilon", 1e-5F));
    const std::string deviation = arithmetic("Sqrt", {arithmetic("Add", {norm.input(4), epsilon})});
    const std::string factor = arithmetic("Div", {norm.input(1), deviation});
    const std::string mean = bias.empty() ? norm.input(3) : arithmetic("Sub", {norm.input(3), bias});
    Shape column(shape->size(), 1);
    column[0] = channels[0];
    const std::string factors = graph.add_static("Reshape", {factor, graph.add_integers(column)}, column, kFloat);
    fused.set_input(1, graph.add_static("Mul", {weights, factors}, *shape, kFloat));
    if (bias.empty()) fused.add_input();
    fused.set_input(2, arithmetic("Sub", {norm.input(2), arithmetic("Mul", {factor, mean})}));
    fused.set_output(0, norm.output(0));
    graph.fuse({*conv, index}, std::move(fused));
    ++found;
  }
  return found;
}

}  // namespace doppler::program
