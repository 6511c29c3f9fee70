#pragma once

#include <optional>

#include "doppler/program/expr/program.h"

namespace doppler::program {

// Layers, built from the core. "Last dimensions" is how many trailing dimensions a function works over: 1, or
// 2 where heads are split (D = heads · head size). f16 inputs are widened to f32 inside norms, softmax and
// rotary, and narrowed after; the casts are expressions of their own, as in the published graphs.

// x[…, d] · w[d, …]: contracts the last dimension of x with the first of w.
Expr matmul(Expr x, Expr w);
Expr relu(Expr x);
Expr gelu(Expr x);
Expr silu(Expr x);
Expr softmax(Expr x);  // over the last dimension
// x / √(mean(x²) + ε) · w
Expr rms_norm(Expr x, Expr w, std::size_t last_dimensions = 1, double epsilon = 1e-6);
// (x - mean(x)) / √(var(x) + ε) · w + b
Expr layer_norm(Expr x, Expr w, Expr b, double epsilon = 1e-5);
// Turns pairs of the last dimension of x[b, s, h, d] by the complex numbers table[s, d/2].
Expr rotary(Expr x, Expr table);
// softmax(q·kᵀ/√d [+ mask])·v for q, k, v[b, s, h, d] and mask[s, t]; k and v may be longer than q (a cache).
// The result is [b, h, s, d].
Expr attention(Expr q, Expr k, Expr v, std::optional<Expr> mask);
// 0 on and below the diagonal, -∞ above.
Expr causal_mask(Program& program, Index size, DType dtype);
// Mean over rows of -log softmax(logits)·targets; targets are one-hot rows or any distribution.
Expr cross_entropy(Expr logits, Expr targets);
Expr mean_square_error(Expr prediction, Expr target);
// w2 · relu(w1 · x)
Expr mlp(Expr x, Expr w1, Expr w2);

}  // namespace doppler::program
