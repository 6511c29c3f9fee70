#pragma once

#include <string_view>
#include <vector>

#include "doppler/program/expr/program.h"

namespace doppler::program {

// Reverse-mode differentiation. Gradients are expressions of the same program, so backward passes are cut,
// placed and run like forward ones. Relationally: the gradient of a sum is a join back on the group key; that
// of a join is a join of the output's gradient with the other operands and a sum onto the operand's own key.
//
// `loss` is a real scalar. The gradient of a complex tensor z = u + iv is ∂/∂u + i ∂/∂v. Ties of a maximum
// share its gradient equally; a product that contains a zero has no usable gradient (it divides by the
// factor). Throws InputError if `loss` is no real scalar, or at a function without a complex derivative.
std::vector<Expr> gradients(Expr loss, const std::vector<Expr>& with_respect_to);

enum class Optimizer : std::uint8_t { sgd, adam };
Optimizer parse_optimizer(std::string_view text);  // throws InputError

// Turns a program with a loss into one training step: backward pass and an update of every weight, the only
// other output being the loss. Runtime variables: learning_rate and, for Adam (Kingma & Ba 2015), beta1_power
// and beta2_power, the decay rates 0.9 and 0.999 to the power of the step. Moments are f32 at least. Throws
// InputError naming a weight that the loss does not depend on.
void add_training_step(Expr loss, Optimizer optimizer);

}  // namespace doppler::program
