#pragma once

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/program/expr/evaluate.h"

namespace doppler::program {

// The arguments of a scalar function.
inline const Scalar kX = Scalar::argument(0);
inline const Scalar kY = Scalar::argument(1);

inline Dense random_dense(const Shape& shape, Rng& rng, double low = -1, double high = 1, bool complex = false) {
  Dense result(shape);
  for (auto& value : result.values) value = {rng.uniform(low, high), complex ? rng.uniform(low, high) : 0.0};
  return result;
}

inline Values random_inputs(const Program& program, std::uint64_t seed, double low = -1, double high = 1) {
  Rng rng(seed);
  Values result;
  for (ExprId id = 0; id < program.size(); ++id)
    if (program.node(id).as<Input>() != nullptr)
      result[id] = random_dense(program.node(id).shape, rng, low, high, is_complex(program.node(id).dtype));
  return result;
}

inline double largest_difference(const Dense& a, const Dense& b) {
  EXPECT_EQ(a.shape, b.shape);
  double result = 0;
  for (std::size_t i = 0; i < a.values.size() && i < b.values.size(); ++i)
    result = std::max(result, std::abs(a.values[i] - b.values[i]));
  return result;
}

template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

}  // namespace doppler::program
