#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "doppler/program/expr/scalar.h"

namespace doppler {

// A scalar function compiled to run over many elements at a time: each instruction is one tight loop over a lane of
// kLaneSize elements, which stay in the first-level cache between instructions. What is known before the run
// (constants, variables, functions of those) is computed once.
inline constexpr std::size_t kLaneSize = 512;

template <typename T>
class LaneCode {
 public:
  // Throws InputError if a variable has no value.
  LaneCode(const program::Scalar& scalar, const program::Variables& variables);

  std::size_t register_count() const { return register_count_; }  // lanes that run() needs beside its arguments
  bool reads(std::size_t argument) const { return argument < reads_.size() && reads_[argument]; }

  // Fills the registers that hold constants; once per set of registers.
  void prepare(T* registers) const;
  // Computes output[i] = f(arguments[0][i], …) for i below count, at most kLaneSize. The output is none of the
  // arguments.
  void run(std::span<const T* const> arguments, T* registers, T* output, std::size_t count) const;

 private:
  enum class Op : std::uint8_t {
    copy,
    constant,
    add,
    add_constant,
    subtract,
    multiply,
    scale,  // by a constant
    divide,
    reciprocal,
    square,
    cube,
    square_root,
    reciprocal_root,
    power,
    exp,
    log,
    tanh,
    conjugate,
    maximum,
    minimum,
    select,
  };
  struct Step {
    Op op = Op::copy;
    std::uint32_t in[4] = {0, 0, 0, 0};
    std::uint32_t out = 0;
    T value = T(0);
  };
  class Compiler;
  static void apply(const Step& step, const T* const* in, T* out, std::size_t count);

  std::vector<Step> steps_;  // operands: below argument_count_ an argument, else register + argument_count_
  std::vector<std::pair<std::uint32_t, T>> constants_;  // registers that hold one
  std::uint32_t argument_count_ = 0;
  std::size_t register_count_ = 0;
  std::vector<char> reads_;
};

extern template class LaneCode<float>;
extern template class LaneCode<double>;
extern template class LaneCode<std::complex<float>>;
extern template class LaneCode<std::complex<double>>;

}  // namespace doppler
