#include "doppler/program/expr/library.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

using Labels = std::vector<std::string>;
const Scalar kX = Scalar::argument(0);
const Scalar kY = Scalar::argument(1);

Labels labels(std::string_view prefix, std::size_t count) {
  Labels result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(fmt::format("{}{}", prefix, i));
  return result;
}

Labels first(Labels values, std::size_t count) {
  values.resize(count);
  return values;
}

Labels last(const Labels& values, std::size_t count) {
  return {values.end() - static_cast<std::ptrdiff_t>(count), values.end()};
}

void require_rank(std::string_view what, Expr x, std::size_t least) {
  if (x.rank() < least)
    throw InputError(fmt::format("{} of '{}': found rank {}; required at least {}", what, x.program->node(x.id).name,
                                 x.rank(), least));
}

Expr widened(Expr x) { return x.program->convert(x, x.dtype() == DType::f16 ? DType::f32 : x.dtype(), "widen"); }
Expr narrowed(Expr x, DType dtype) { return x.program->convert(x, dtype, "narrow"); }

// f(x, y) where y lacks the last dimensions of x.
Expr with_rows(Expr x, Expr y, const Scalar& f, std::string name) {
  const Labels all = labels("i", x.rank());
  return x.program->einsum({all, first(all, y.rank())}, all, {x, y}, {.join = f, .name = std::move(name)});
}

// f(x, y) where y has only the last dimensions of x.
Expr with_columns(Expr x, Expr y, const Scalar& f, std::string name) {
  const Labels all = labels("i", x.rank());
  return x.program->einsum({all, last(all, y.rank())}, all, {x, y}, {.join = f, .name = std::move(name)});
}

Expr reduce_last(Expr x, std::size_t count, Aggregate aggregate, std::string name, const Scalar& f = kX) {
  const Labels all = labels("i", x.rank());
  return x.program->einsum({all}, first(all, x.rank() - count), {x},
                           {.join = f, .aggregate = aggregate, .name = std::move(name)});
}

Expr apply(Expr x, const Scalar& f, std::string name) { return x.program->map({x}, f, std::move(name)); }

Index last_elements(Expr x, std::size_t count) {
  Index result = 1;
  for (std::size_t i = 0; i < count; ++i) result *= x.shape()[x.rank() - 1 - i];
  return result;
}

}  // namespace

Expr matmul(Expr x, Expr w) {
  require_rank("matmul", x, 1);
  require_rank("matmul", w, 1);
  const Labels rows = labels("i", x.rank() - 1), columns = labels("j", w.rank() - 1);
  Labels in_x = rows, in_w = {"k"}, out = rows;
  in_x.emplace_back("k");
  in_w.insert(in_w.end(), columns.begin(), columns.end());
  out.insert(out.end(), columns.begin(), columns.end());
  return x.program->einsum({in_x, in_w}, out, {x, w}, {.name = "matmul"});
}

Expr relu(Expr x) { return apply(x, relu(kX), "relu"); }
Expr gelu(Expr x) { return apply(x, gelu(kX), "gelu"); }
Expr silu(Expr x) { return apply(x, silu(kX), "silu"); }

Expr softmax(Expr x) {
  require_rank("softmax", x, 1);
  const Program::Scope scope(*x.program, "softmax");
  const Expr wide = widened(x);
  const Expr largest = reduce_last(wide, 1, Aggregate::max, "max");
  const Expr shift = with_rows(wide, largest, kX - kY, "shift");
  const Expr weight = apply(shift, exp(kX), "exp");
  const Expr total = reduce_last(weight, 1, Aggregate::sum, "sum");
  return narrowed(with_rows(weight, total, kX / kY, "divide"), x.dtype());
}

Expr rms_norm(Expr x, Expr w, std::size_t last_dimensions, double epsilon) {
  require_rank("rms_norm", x, last_dimensions);
  const Program::Scope scope(*x.program, "rms_norm");
  const Expr wide = widened(x);
  const Expr square = apply(wide, kX * kX, "square");
  const Expr total = reduce_last(square, last_dimensions, Aggregate::sum, "sum");
  const auto count = static_cast<double>(last_elements(x, last_dimensions));
  const Expr mean = apply(total, kX * (1 / count) + epsilon, "mean");
  const Expr scale = apply(mean, pow(kX, -0.5), "rsqrt");
  const Expr normal = narrowed(with_rows(wide, scale, kX * kY, "normalise"), x.dtype());
  return with_columns(normal, w, kX * kY, "weight");
}

Expr layer_norm(Expr x, Expr w, Expr b, double epsilon) {
  require_rank("layer_norm", x, 1);
  const Program::Scope scope(*x.program, "layer_norm");
  const Expr wide = widened(x);
  const double share = 1 / static_cast<double>(x.shape().back());
  const Expr mean = apply(reduce_last(wide, 1, Aggregate::sum, "sum"), kX * share, "mean");
  const Expr centred = with_rows(wide, mean, kX - kY, "centre");
  const Expr squares = reduce_last(centred, 1, Aggregate::sum, "squares", kX * kX);
  const Expr scale = apply(squares, pow(kX * share + epsilon, -0.5), "rsqrt");
  const Expr normal = narrowed(with_rows(centred, scale, kX * kY, "normalise"), x.dtype());
  return with_columns(with_columns(normal, w, kX * kY, "weight"), b, kX + kY, "bias");
}

Expr rotary(Expr x, Expr table) {
  require_rank("rotary", x, 4);
  Program& program = *x.program;
  const Program::Scope scope(program, "rotary");
  const Expr pairs = program.to_complex(widened(x));
  const Expr turned = program.einsum("bshd,sd->bshd", {pairs, table}, {.name = "turn"});
  return narrowed(program.to_real(turned), x.dtype());
}

Expr attention(Expr q, Expr k, Expr v, std::optional<Expr> mask) {
  require_rank("attention", q, 4);
  Program& program = *q.program;
  const Program::Scope scope(program, "attention");
  const Expr raw = program.einsum("bshd,bthd->bhst", {q, k}, {.name = "scores"});
  Expr scores = (1 / std::sqrt(static_cast<double>(q.shape().back()))) * raw;
  if (mask) scores = program.einsum("bhst,st->bhst", {scores, *mask}, {.join = kX + kY, .name = "mask"});
  return program.einsum("bhst,bthd->bhsd", {softmax(scores), v}, {.name = "values"});
}

Expr causal_mask(Program& program, Index size, DType dtype) {
  return program.fill({size, size}, dtype, {.value = 0, .above = -std::numeric_limits<double>::infinity()}, "mask");
}

Expr cross_entropy(Expr logits, Expr targets) {
  require_rank("cross_entropy", logits, 1);
  Program& program = *logits.program;
  const Program::Scope scope(program, "cross_entropy");
  const Expr wide = widened(logits);
  const Expr largest = reduce_last(wide, 1, Aggregate::max, "max");
  const Expr shift = with_rows(wide, largest, kX - kY, "shift");
  const Expr total = reduce_last(shift, 1, Aggregate::sum, "sum_exp", exp(kX));
  const Labels all = labels("i", logits.rank());
  const Expr chosen =
      program.einsum({all, all}, first(all, logits.rank() - 1), {shift, widened(targets)}, {.name = "chosen"});
  const Expr row = program.map({total, chosen}, log(kX) - kY, "row");
  if (row.rank() == 0) return row;
  const double share = 1 / static_cast<double>(product(row.shape()));
  return reduce_last(row, row.rank(), Aggregate::sum, "mean", share * kX);
}

Expr mean_square_error(Expr prediction, Expr target) {
  require_rank("mean_square_error", prediction, 1);
  const Labels all = labels("i", prediction.rank());
  const double share = 1 / static_cast<double>(product(prediction.shape()));
  return prediction.program->einsum({all, all}, {}, {prediction, target},
                                    {.join = share * (kX - kY) * (kX - kY), .name = "mean_square_error"});
}

Expr mlp(Expr x, Expr w1, Expr w2) {
  const Program::Scope scope(*x.program, "mlp");
  return matmul(relu(matmul(x, w1)), w2);
}

}  // namespace doppler::program
