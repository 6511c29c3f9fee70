#include "doppler/kernels/onnx/activation.h"

#include <array>

namespace doppler::model {
namespace {

struct ActivationRow {
  std::string_view name;
  Unary function;
  std::size_t parameters;
  float p, q;  // where the node does not say
};
constexpr std::array<ActivationRow, 12> kActivations = {{
    {"Relu", Unary::relu, 0, 0, 0},
    {"Clip", Unary::clip, 2, -3.4e38F, 3.4e38F},
    {"LeakyRelu", Unary::leaky_relu, 1, 0.01F, 0},
    {"HardSigmoid", Unary::hard_sigmoid, 2, 0.2F, 0.5F},
    {"HardSwish", Unary::hard_swish, 0, 0, 0},
    {"Sigmoid", Unary::sigmoid, 0, 0, 0},
    {"Silu", Unary::silu, 0, 1, 0},
    {"Tanh", Unary::tanh, 0, 0, 0},
    {"Gelu", Unary::gelu, 0, 0, 0},
    {"GeluTanh", Unary::gelu_tanh, 0, 0, 0},
    {"Elu", Unary::elu, 1, 1, 0},
    {"Softplus", Unary::softplus, 0, 0, 0},
}};

}  // namespace

Activation activation_of(const Spec& spec) {
  const std::string name = spec.text("activation", "");
  if (name.empty()) return {};
  const std::vector<float> given = spec.attributes().reals("activation_params").value_or(std::vector<float>());
  for (const ActivationRow& row : kActivations) {
    if (row.name != name) continue;
    if (given.size() > row.parameters)
      refuse(fmt::format("{} parameters of '{}'", given.size(), name), fmt::format("at most {}", row.parameters));
    return {row.function, !given.empty() ? given[0] : spec.real("activation_alpha", row.p),
            given.size() > 1 ? given[1] : spec.real("activation_beta", row.q)};
  }
  std::string names;
  for (const ActivationRow& row : kActivations) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  refuse(fmt::format("activation '{}'", name), "one of " + names);
}

}  // namespace doppler::model
