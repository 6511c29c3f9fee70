// Our gradients against libtorch's autograd, in double precision. The only file of the module that sees
// torch.

#include <torch/torch.h>

#include "doppler/program/expr/autodiff.h"
#include "doppler/program/expr/library.h"
#include "tests/program/support.h"

namespace doppler::program {
namespace {

constexpr double kTolerance = 1e-10;

torch::Tensor to_torch(const Dense& dense) {
  const torch::Tensor result = torch::empty(dense.shape, torch::kFloat64);
  auto* values = result.data_ptr<double>();
  for (std::size_t i = 0; i < dense.values.size(); ++i) values[i] = dense.values[i].real();
  return result.clone().requires_grad_();
}

// Value and gradients of `loss` here, and of `reference` on the same inputs there.
template <typename Reference>
void expect_same_gradients(Expr loss, const std::vector<Expr>& inputs, Reference reference) {
  Program& p = *loss.program;
  const std::vector<Expr> slopes = gradients(loss, inputs);
  const Values values = random_inputs(p, 11);
  const std::vector<Dense> found = evaluate(p, values);
  std::vector<torch::Tensor> leaves;
  for (const Expr input : inputs) leaves.push_back(to_torch(values.at(input.id)));
  const torch::Tensor expected = reference(leaves);
  expected.backward();
  EXPECT_NEAR(found[loss.id].values[0].real(), expected.item<double>(), kTolerance);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const torch::Tensor gradient = leaves[k].grad().contiguous();
    const auto* numbers = gradient.data_ptr<double>();
    for (std::size_t i = 0; i < found[slopes[k].id].values.size(); ++i)
      EXPECT_NEAR(found[slopes[k].id].values[i].real(), numbers[i], kTolerance)
          << p.node(inputs[k].id).name << " element " << i;
  }
}

using Leaves = std::vector<torch::Tensor>;

TEST(OurGradients, AreThoseOfLibtorchForATwoLayerPerceptron) {
  Program p;
  const Expr x = p.input("x", {5, 4}, DType::f64), w1 = p.weight("w1", {4, 6}, DType::f64),
             w2 = p.weight("w2", {6, 3}, DType::f64), t = p.input("t", {5, 3}, DType::f64);
  expect_same_gradients(mean_square_error(matmul(silu(matmul(x, w1)), w2), t), {x, w1, w2, t}, [](const Leaves& in) {
    return torch::mse_loss(torch::silu(in[0].matmul(in[1])).matmul(in[2]), in[3]);
  });
}

TEST(OurGradients, AreThoseOfLibtorchForRmsNormAndCrossEntropy) {
  Program p;
  const Expr x = p.input("x", {5, 4}, DType::f64), w = p.weight("w", {4}, DType::f64),
             t = p.input("t", {5, 4}, DType::f64);
  expect_same_gradients(cross_entropy(rms_norm(x, w), t), {x, w}, [&](const Leaves& in) {
    const torch::Tensor normal = in[0] * torch::rsqrt(in[0].square().mean(-1, true) + 1e-6) * in[1];
    const torch::Tensor targets = to_torch(random_inputs(p, 11).at(t.id)).detach();
    return (torch::logsumexp(normal, -1) - (targets * normal).sum(-1) +
            (targets.sum(-1) - 1) * std::get<0>(normal.max(-1)))
        .mean();
  });
}

TEST(OurGradients, AreThoseOfLibtorchForMaskedAttention) {
  Program p;
  const Shape shape = {2, 4, 2, 6};
  const Expr q = p.input("q", shape, DType::f64), k = p.input("k", shape, DType::f64),
             v = p.input("v", shape, DType::f64);
  const Expr y = attention(q, k, v, causal_mask(p, 4, DType::f64));
  const Expr loss = p.einsum("bhsd->", {y}, {.join = Scalar::argument(0) * Scalar::argument(0)});
  expect_same_gradients(loss, {q, k, v}, [](const Leaves& in) {
    const torch::Tensor mask = torch::full({4, 4}, -std::numeric_limits<double>::infinity(), torch::kFloat64).triu(1);
    const torch::Tensor scores = torch::einsum("bshd,bthd->bhst", {in[0], in[1]}) / std::sqrt(6.0) + mask;
    return torch::einsum("bhst,bthd->bhsd", {torch::softmax(scores, -1), in[2]}).square().sum();
  });
}

TEST(OurGradients, AreThoseOfLibtorchForLayerNormAndGelu) {
  Program p;
  const Expr x = p.input("x", {3, 5}, DType::f64), w = p.weight("w", {5}, DType::f64),
             b = p.weight("b", {5}, DType::f64);
  const Expr y = gelu(layer_norm(x, w, b));
  const Expr loss = p.einsum("ij->", {y}, {.join = Scalar::argument(0) * Scalar::argument(0)});
  expect_same_gradients(loss, {x, w, b}, [](const Leaves& in) {
    return torch::gelu(torch::layer_norm(in[0], {5}, in[1], in[2], 1e-5), "tanh").square().sum();
  });
}

}  // namespace
}  // namespace doppler::program
