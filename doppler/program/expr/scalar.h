#pragma once

#include <complex>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/program/expr/shape.h"

namespace doppler::program {

// Values of the runtime variables of a program (learning rate, Adam's step) at launch.
using Variables = std::map<std::string, double, std::less<>>;

// A scalar function of the elements of a join: straight-line code in which every instruction reads earlier
// ones, so nothing here recurses and equal code means equal functions. Construction folds constants, drops
// neutral elements and shares common subexpressions.
//
//   const Scalar x = Scalar::argument(0);
//   const Scalar silu = x * sigmoid(x);
class Scalar {
 public:
  enum class Op : std::uint8_t {
    argument,  // element of input `index`
    constant,
    variable,  // runtime variable `name`
    add,
    multiply,
    power,
    exp,
    log,
    tanh,
    conjugate,
    convert,  // to `dtype`
    select,   // in0 < in1 ? in2 : in3 (by real parts)
  };
  struct Instruction {
    Op op;
    std::uint32_t in[4] = {0, 0, 0, 0};
    double value = 0;
    std::string name;
    DType dtype = DType::f32;
    bool operator==(const Instruction&) const = default;
  };

  static std::size_t arity(Op op);  // how many of `in` are instructions

  Scalar(double constant);  // NOLINT: 2 * x reads like mathematics
  static Scalar argument(std::uint32_t index);
  static Scalar variable(std::string name);

  // The function that code() came from. Throws InputError unless every instruction reads earlier ones.
  static Scalar from_code(std::vector<Instruction> code);

  std::span<const Instruction> code() const { return code_; }
  bool is_constant() const { return result().op == Op::constant; }
  double constant() const { return result().value; }
  bool is_constant(double value) const { return is_constant() && constant() == value; }
  bool reads(std::uint32_t argument) const;
  std::uint32_t argument_count() const;  // one more than the largest argument
  // Arithmetic instructions per element; arguments, constants and conversions are free.
  Flops flops() const;

  // Every argument k becomes inner[k].
  Scalar substitute(std::span<const Scalar> inner) const;
  // ∂/∂argument. Throws InputError through conjugate, which has no complex derivative.
  Scalar derivative(std::uint32_t argument) const;
  // The dtype of the value. Constants and variables adapt. Throws InputError naming both dtypes where they
  // clash.
  DType dtype(std::span<const DType> arguments) const;

  // Throws InputError if a variable has no value. Evaluation is in double precision whatever the dtypes.
  std::complex<double> evaluate(std::span<const std::complex<double>> arguments, const Variables& variables) const;
  // `names` stands for the arguments.
  std::string to_string(std::span<const std::string> names) const;

  bool operator==(const Scalar&) const = default;

  friend Scalar operator+(const Scalar& a, const Scalar& b);
  friend Scalar operator*(const Scalar& a, const Scalar& b);
  friend Scalar pow(const Scalar& base, const Scalar& exponent);
  friend Scalar exp(const Scalar& x);
  friend Scalar log(const Scalar& x);
  friend Scalar tanh(const Scalar& x);
  friend Scalar conj(const Scalar& x);
  friend Scalar convert(DType dtype, const Scalar& x);
  friend Scalar if_less(const Scalar& a, const Scalar& b, const Scalar& then, const Scalar& otherwise);

 private:
  Scalar() = default;
  const Instruction& result() const { return code_.back(); }
  // Merges the operands' code, appends the instruction unless it is there, and drops code that is not used.
  static Scalar combine(Instruction instruction, std::initializer_list<const Scalar*> operands);
  void drop_unused(std::uint32_t result);

  std::vector<Instruction> code_;  // the value is that of the last one
};

Scalar convert(DType dtype, const Scalar& x);
Scalar operator-(const Scalar& x);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);
Scalar maximum(const Scalar& a, const Scalar& b);
Scalar minimum(const Scalar& a, const Scalar& b);
Scalar sqrt(const Scalar& x);
Scalar sigmoid(const Scalar& x);
Scalar relu(const Scalar& x);
Scalar silu(const Scalar& x);
Scalar gelu(const Scalar& x);  // the tanh approximation (Hendrycks & Gimpel)
Scalar if_equal(const Scalar& a, const Scalar& b, const Scalar& then, const Scalar& otherwise);

}  // namespace doppler::program
