#include "doppler/program/expr/scalar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

using Op = Scalar::Op;
using Instruction = Scalar::Instruction;
using Complex = std::complex<double>;

// The same operation on other operands.
Scalar rebuild(const Instruction& instruction, const std::vector<Scalar>& values) {
  const auto in = [&](std::size_t k) -> const Scalar& { return values[instruction.in[k]]; };
  switch (instruction.op) {
    case Op::argument:
      return Scalar::argument(instruction.in[0]);
    case Op::constant:
      return Scalar(instruction.value);
    case Op::variable:
      return Scalar::variable(instruction.name);
    case Op::add:
      return in(0) + in(1);
    case Op::multiply:
      return in(0) * in(1);
    case Op::power:
      return pow(in(0), in(1));
    case Op::exp:
      return exp(in(0));
    case Op::log:
      return log(in(0));
    case Op::tanh:
      return tanh(in(0));
    case Op::conjugate:
      return conj(in(0));
    case Op::convert:
      return convert(instruction.dtype, in(0));
    case Op::select:
      return if_less(in(0), in(1), in(2), in(3));
  }
  throw InternalError("scalar: unknown instruction; required one of Scalar::Op");
}

// Complex powers lose exactness on the real line, so real operands take the real function.
Complex power(Complex base, Complex exponent) {
  if (base.imag() == 0 && exponent.imag() == 0) return std::pow(base.real(), exponent.real());
  return std::pow(base, exponent);
}
Complex exponential(Complex x) { return x.imag() == 0 ? Complex(std::exp(x.real())) : std::exp(x); }
Complex logarithm(Complex x) { return x.imag() == 0 ? Complex(std::log(x.real())) : std::log(x); }
Complex product_of(Complex a, Complex b) {
  if (a.imag() == 0 && b.imag() == 0) return a.real() * b.real();
  return a * b;
}

}  // namespace

std::size_t Scalar::arity(Op op) {
  switch (op) {
    case Op::argument:
    case Op::constant:
    case Op::variable:
      return 0;
    case Op::add:
    case Op::multiply:
    case Op::power:
      return 2;
    case Op::select:
      return 4;
    default:
      return 1;
  }
}

Scalar::Scalar(double constant) { code_.push_back({.op = Op::constant, .value = constant, .name = {}}); }

Scalar Scalar::argument(std::uint32_t index) {
  Scalar result;
  result.code_.push_back({.op = Op::argument, .in = {index}, .name = {}});
  return result;
}

Scalar Scalar::variable(std::string name) {
  Scalar result;
  result.code_.push_back({.op = Op::variable, .name = std::move(name)});
  return result;
}

Scalar Scalar::from_code(std::vector<Instruction> code) {
  if (code.empty()) throw InputError("scalar: found no instructions; required at least one");
  for (std::size_t i = 0; i < code.size(); ++i)
    for (std::size_t k = 0; k < arity(code[i].op); ++k)
      if (code[i].in[k] >= i)
        throw InputError(fmt::format("scalar: instruction {} reads {}; required an earlier one", i, code[i].in[k]));
  Scalar result;
  result.code_ = std::move(code);
  result.drop_unused(static_cast<std::uint32_t>(result.code_.size() - 1));
  return result;
}

Scalar Scalar::combine(Instruction instruction, std::initializer_list<const Scalar*> operands) {
  Scalar result;
  const auto append = [&](const Instruction& added) {
    const auto found = std::find(result.code_.begin(), result.code_.end(), added);
    if (found != result.code_.end()) return static_cast<std::uint32_t>(found - result.code_.begin());
    result.code_.push_back(added);
    return static_cast<std::uint32_t>(result.code_.size() - 1);
  };
  std::size_t slot = 0;
  for (const Scalar* operand : operands) {
    std::vector<std::uint32_t> moved;
    for (Instruction copy : operand->code_) {
      for (std::size_t k = 0; k < arity(copy.op); ++k) copy.in[k] = moved[copy.in[k]];
      moved.push_back(append(copy));
    }
    instruction.in[slot++] = moved.back();
  }
  result.drop_unused(append(instruction));
  return result;
}

void Scalar::drop_unused(std::uint32_t result) {
  std::vector<char> used(code_.size(), 0);
  used[result] = 1;
  for (std::uint32_t i = result + 1; i-- > 0;)
    if (used[i])
      for (std::size_t k = 0; k < arity(code_[i].op); ++k) used[code_[i].in[k]] = 1;
  std::vector<std::uint32_t> moved(code_.size(), 0);
  std::vector<Instruction> kept;
  for (std::uint32_t i = 0; i <= result; ++i) {
    if (!used[i]) continue;
    for (std::size_t k = 0; k < arity(code_[i].op); ++k) code_[i].in[k] = moved[code_[i].in[k]];
    moved[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(code_[i]));
  }
  code_ = std::move(kept);
}

bool Scalar::reads(std::uint32_t argument) const {
  return std::any_of(code_.begin(), code_.end(),
                     [&](const Instruction& i) { return i.op == Op::argument && i.in[0] == argument; });
}

std::uint32_t Scalar::argument_count() const {
  std::uint32_t count = 0;
  for (const Instruction& i : code_)
    if (i.op == Op::argument) count = std::max(count, i.in[0] + 1);
  return count;
}

Flops Scalar::flops() const {
  return static_cast<Flops>(std::count_if(code_.begin(), code_.end(),
                                          [](const Instruction& i) { return arity(i.op) > 0 && i.op != Op::convert; }));
}

Scalar Scalar::substitute(std::span<const Scalar> inner) const {
  std::vector<Scalar> values;
  for (const Instruction& i : code_) values.push_back(i.op == Op::argument ? inner[i.in[0]] : rebuild(i, values));
  return values.back();
}

Scalar Scalar::derivative(std::uint32_t argument) const {
  std::vector<Scalar> values, slopes;
  for (const Instruction& i : code_) {
    values.push_back(rebuild(i, values));
    const Scalar& value = values.back();
    const auto x = [&](std::size_t k) -> const Scalar& { return values[i.in[k]]; };
    const auto dx = [&](std::size_t k) -> const Scalar& { return slopes[i.in[k]]; };
    slopes.push_back([&]() -> Scalar {
      switch (i.op) {
        case Op::argument:
          return i.in[0] == argument ? 1.0 : 0.0;
        case Op::constant:
        case Op::variable:
          return 0.0;
        case Op::add:
          return dx(0) + dx(1);
        case Op::multiply:
          return dx(0) * x(1) + x(0) * dx(1);
        case Op::power: {
          const Scalar from_base = x(1) * pow(x(0), x(1) - 1.0) * dx(0);
          return dx(1).is_constant(0) ? from_base : from_base + value * log(x(0)) * dx(1);
        }
        case Op::exp:
          return value * dx(0);
        case Op::log:
          return dx(0) / x(0);
        case Op::tanh:
          return (1.0 - value * value) * dx(0);
        case Op::conjugate:
          if (dx(0).is_constant(0)) return 0.0;
          throw InputError("derivative: found conj(…); required a function with a complex derivative");
        case Op::convert:
          return convert(i.dtype, dx(0));
        case Op::select:
          return if_less(x(0), x(1), dx(2), dx(3));
      }
      throw InternalError("derivative: unknown instruction; required one of Scalar::Op");
    }());
  }
  return slopes.back();
}

DType Scalar::dtype(std::span<const DType> arguments) const {
  // None: constants and variables, which take the type of what they meet.
  std::vector<std::optional<DType>> types;
  for (const Instruction& i : code_) {
    std::optional<DType> type;
    if (i.op == Op::argument) type = arguments[i.in[0]];
    for (std::size_t k = 0; k < arity(i.op); ++k) {
      const std::optional<DType> in = types[i.in[k]];
      if (type && in && *type != *in)
        throw InputError(fmt::format("found {} and {} in one operation; required one dtype, or a conversion",
                                     program::to_string(*type), program::to_string(*in)));
      if (in) type = in;
    }
    types.push_back(i.op == Op::convert ? i.dtype : type);
  }
  if (types.back()) return *types.back();
  return arguments.empty() ? DType::f32 : arguments[0];
}

Complex Scalar::evaluate(std::span<const Complex> arguments, const Variables& variables) const {
  constexpr std::size_t kUsualLength = 64;  // up to this, evaluating one element allocates nothing
  std::array<Complex, kUsualLength> few;
  std::vector<Complex> many(code_.size() > kUsualLength ? code_.size() : 0);
  Complex* const values = many.empty() ? few.data() : many.data();
  for (std::size_t n = 0; n < code_.size(); ++n) {
    const Instruction& i = code_[n];
    const auto in = [&](std::size_t k) { return values[i.in[k]]; };
    switch (i.op) {
      case Op::argument:
        values[n] = arguments[i.in[0]];
        break;
      case Op::constant:
        values[n] = i.value;
        break;
      case Op::variable: {
        const auto found = variables.find(i.name);
        if (found == variables.end())
          throw InputError(fmt::format("variable '{}': found no value; required one at launch", i.name));
        values[n] = found->second;
        break;
      }
      case Op::add:
        values[n] = in(0) + in(1);
        break;
      case Op::multiply:
        values[n] = product_of(in(0), in(1));
        break;
      case Op::power:
        values[n] = power(in(0), in(1));
        break;
      case Op::exp:
        values[n] = exponential(in(0));
        break;
      case Op::log:
        values[n] = logarithm(in(0));
        break;
      case Op::tanh:
        values[n] = in(0).imag() == 0 ? Complex(std::tanh(in(0).real())) : std::tanh(in(0));
        break;
      case Op::conjugate:
        values[n] = std::conj(in(0));
        break;
      case Op::convert:
        values[n] = in(0);
        break;
      case Op::select:
        values[n] = in(0).real() < in(1).real() ? in(2) : in(3);
        break;
    }
  }
  return values[code_.size() - 1];
}

std::string Scalar::to_string(std::span<const std::string> names) const {
  constexpr std::size_t kLongest = 160;  // shared subexpressions are printed again, so text can explode
  std::vector<std::string> texts;
  for (const Instruction& i : code_) {
    const auto in = [&](std::size_t k) -> const std::string& { return texts[i.in[k]]; };
    std::string text = [&]() -> std::string {
      switch (i.op) {
        case Op::argument:
          return names[i.in[0]];
        case Op::constant:
          return fmt::format("{:g}", i.value);
        case Op::variable:
          return "$" + i.name;
        case Op::add:
          return fmt::format("({} + {})", in(0), in(1));
        case Op::multiply:
          return fmt::format("{} * {}", in(0), in(1));
        case Op::power:
          return fmt::format("({})^{}", in(0), in(1));
        case Op::exp:
          return fmt::format("exp({})", in(0));
        case Op::log:
          return fmt::format("log({})", in(0));
        case Op::tanh:
          return fmt::format("tanh({})", in(0));
        case Op::conjugate:
          return fmt::format("conj({})", in(0));
        case Op::convert:
          return fmt::format("{}({})", program::to_string(i.dtype), in(0));
        case Op::select:
          return fmt::format("if({} < {}, {}, {})", in(0), in(1), in(2), in(3));
      }
      throw InternalError("scalar: unknown instruction; required one of Scalar::Op");
    }();
    texts.push_back(text.size() > kLongest ? "…" : std::move(text));
  }
  return texts.back();
}

Scalar operator+(const Scalar& a, const Scalar& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() + b.constant();
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  return Scalar::combine({.op = Op::add, .name = {}}, {&a, &b});
}

Scalar operator*(const Scalar& a, const Scalar& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() * b.constant();
  if (b.is_constant()) return b * a;  // constants go first, so that 2 * x and x * 2 are one function
  if (a.is_constant(0)) return 0.0;
  if (a.is_constant(1)) return b;
  return Scalar::combine({.op = Op::multiply, .name = {}}, {&a, &b});
}

Scalar pow(const Scalar& base, const Scalar& exponent) {
  if (base.is_constant() && exponent.is_constant()) return std::pow(base.constant(), exponent.constant());
  if (exponent.is_constant(0)) return 1.0;
  if (exponent.is_constant(1)) return base;
  return Scalar::combine({.op = Op::power, .name = {}}, {&base, &exponent});
}

Scalar exp(const Scalar& x) {
  if (x.is_constant()) return std::exp(x.constant());
  return Scalar::combine({.op = Op::exp, .name = {}}, {&x});
}

Scalar log(const Scalar& x) {
  if (x.is_constant()) return std::log(x.constant());
  return Scalar::combine({.op = Op::log, .name = {}}, {&x});
}

Scalar tanh(const Scalar& x) {
  if (x.is_constant()) return std::tanh(x.constant());
  return Scalar::combine({.op = Op::tanh, .name = {}}, {&x});
}

Scalar conj(const Scalar& x) {
  if (x.is_constant()) return x;
  return Scalar::combine({.op = Op::conjugate, .name = {}}, {&x});
}

Scalar convert(DType dtype, const Scalar& x) {
  if (x.is_constant() || (x.result().op == Op::convert && x.result().dtype == dtype)) return x;
  return Scalar::combine({.op = Op::convert, .name = {}, .dtype = dtype}, {&x});
}

Scalar if_less(const Scalar& a, const Scalar& b, const Scalar& then, const Scalar& otherwise) {
  if (a.is_constant() && b.is_constant()) return a.constant() < b.constant() ? then : otherwise;
  if (then == otherwise) return then;
  return Scalar::combine({.op = Op::select, .name = {}}, {&a, &b, &then, &otherwise});
}

Scalar operator-(const Scalar& x) { return -1.0 * x; }
Scalar operator-(const Scalar& a, const Scalar& b) { return a + -b; }
Scalar operator/(const Scalar& a, const Scalar& b) { return a * pow(b, -1.0); }
Scalar maximum(const Scalar& a, const Scalar& b) { return if_less(a, b, b, a); }
Scalar minimum(const Scalar& a, const Scalar& b) { return if_less(b, a, b, a); }
Scalar sqrt(const Scalar& x) { return pow(x, 0.5); }
// Through tanh, which neither overflows nor loses its derivative for large |x|.
Scalar sigmoid(const Scalar& x) { return 0.5 + 0.5 * tanh(0.5 * x); }
Scalar relu(const Scalar& x) { return maximum(x, 0.0); }
Scalar silu(const Scalar& x) { return x * sigmoid(x); }
Scalar gelu(const Scalar& x) {
  constexpr double kSqrtTwoOverPi = 0.7978845608028654;
  return 0.5 * x * (1.0 + tanh(kSqrtTwoOverPi * (x + 0.044715 * pow(x, 3.0))));
}
Scalar if_equal(const Scalar& a, const Scalar& b, const Scalar& then, const Scalar& otherwise) {
  return if_less(a, b, otherwise, if_less(b, a, otherwise, then));
}

}  // namespace doppler::program
