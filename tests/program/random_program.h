#pragma once

#include "doppler/program/expr/library.h"
#include "doppler/program/lower/lower.h"
#include "tests/program/support.h"

namespace doppler::program {

// A random program over small tensors [a, b] whose sizes leave uneven blocks: every kind of expression, with
// sharing.
inline void random_program(Program& p, Rng& rng, int steps) {
  const Scalar x = Scalar::argument(0), y = Scalar::argument(1);
  const Index a = 3 + rng.below(5), b = 2 * (2 + rng.below(3));
  std::vector<Expr> pool = {p.input("x", {a, b}, DType::f64), p.weight("w", {a, b}, DType::f64)};
  const auto pick = [&] { return pool[rng.below(static_cast<std::uint32_t>(pool.size()))]; };
  for (int step = 0; step < steps; ++step) {
    const Expr u = pick(), v = pick();
    switch (rng.below(10)) {
      case 0:
        pool.push_back(p.einsum("ij,kj,kl->il", {u, v, pick()}));
        break;
      case 1:
        pool.push_back(u + 0.5 * v);
        break;
      case 2:
        pool.push_back(softmax(u));
        break;
      case 3:
        pool.push_back(p.einsum("ij,kj->ij", {u, v}, {.join = x - y * y, .aggregate = Aggregate::max}));
        break;
      case 4: {
        const Expr rows = p.einsum("ij->i", {u}, {.join = sigmoid(x), .aggregate = Aggregate::product});
        pool.push_back(p.einsum("i,ij->ij", {rows, v}));
        break;
      }
      case 5:
        pool.push_back(p.select(p.concat({u, v}, 1), {{0, b / 2}, {a, b / 2 + b}}));
        break;
      case 6:
        pool.push_back(p.select(p.concat({u, v, u}, 0), {{1, 0}, {a + 1, b}}));
        break;
      case 7:
        pool.push_back(p.to_real(p.map({p.to_complex(u), p.to_complex(v)}, x * y)));
        break;
      case 8:
        pool.push_back(p.reshape_ones(p.reshape_ones(u, {1, a, 1, b}), {a, b}) * v);
        break;
      case 9:
        pool.push_back(p.map({u, p.fill({a, b}, DType::f64, {.value = 2, .above = -1})}, x * y));
        break;
    }
  }
  p.mark_output(pool.back());
  p.mark_output(pool[pool.size() / 2]);
}

inline Plan random_plan(const Program& program, Rng& rng) {
  Plan plan = uncut(program);
  for (ExprId id = 0; id < program.size(); ++id)
    for (std::size_t i = 0; i < plan[id].size(); ++i)
      plan[id][i] = 1 + rng.below(static_cast<std::uint32_t>(std::min<Index>(3, program.node(id).join_shape()[i])));
  complete(program, plan);
  return plan;
}

}  // namespace doppler::program
