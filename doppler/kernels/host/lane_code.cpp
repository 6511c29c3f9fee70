#include "doppler/kernels/host/lane_code.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "doppler/kernels/element.h"
#include "doppler/kernels/host/vector_math.h"

namespace doppler {
namespace {

using program::Scalar;
using Source = Scalar::Op;

template <typename T, typename F>
void loop1(const T* __restrict a, T* __restrict out, std::size_t count, F f) {
  for (std::size_t i = 0; i < count; ++i) out[i] = f(a[i]);
}
template <typename T, typename F>
void loop2(const T* __restrict a, const T* __restrict b, T* __restrict out, std::size_t count, F f) {
  for (std::size_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
}

// Complex functions have no vector version.
template <typename T>
void exp_of(const std::complex<T>* x, std::complex<T>* out, std::size_t count) {
  loop1(x, out, count, [](std::complex<T> a) { return std::exp(a); });
}
template <typename T>
void log_of(const std::complex<T>* x, std::complex<T>* out, std::size_t count) {
  loop1(x, out, count, [](std::complex<T> a) { return std::log(a); });
}
template <typename T>
void tanh_of(const std::complex<T>* x, std::complex<T>* out, std::size_t count) {
  loop1(x, out, count, [](std::complex<T> a) { return std::tanh(a); });
}

}  // namespace

// Turns instructions into steps: x + -1·y is a subtraction, x · y^-1 a division, and what depends on no argument is a
// number. Steps that are not needed after that are left out, and registers are used again when their last reader is
// done.
template <typename T>
class LaneCode<T>::Compiler {
 public:
  Compiler(const Scalar& scalar, const program::Variables& variables) : scalar_(scalar), variables_(variables) {}

  void compile(LaneCode& result) {
    const auto code = scalar_.code();
    for (std::uint32_t i = 0; i < code.size(); ++i) translate(i, code[i]);
    mark_needed(static_cast<std::uint32_t>(code.size() - 1));
    result.argument_count_ = scalar_.argument_count();
    result.reads_.assign(result.argument_count_, 0);
    emit(result, static_cast<std::uint32_t>(code.size() - 1));
  }

 private:
  // What stands for an instruction: a number, an argument, another instruction, or a step.
  struct Value {
    std::optional<T> number;
    std::optional<std::uint32_t> argument;
    std::optional<Step> step;  // operands are instructions
    bool needed = false;
  };

  static std::size_t arity(Op op) {
    switch (op) {
      case Op::constant:
        return 0;
      case Op::add:
      case Op::subtract:
      case Op::multiply:
      case Op::divide:
      case Op::power:
      case Op::maximum:
      case Op::minimum:
        return 2;
      case Op::select:
        return 4;
      default:
        return 1;
    }
  }

  void translate(std::uint32_t i, const Scalar::Instruction& instruction) {
    values_.emplace_back();
    same_.push_back(i);
    if (instruction.op == Source::argument) {
      values_[i].argument = instruction.in[0];
      return;
    }
    bool known = true;
    for (std::size_t k = 0; k < Scalar::arity(instruction.op); ++k)
      known = known && values_[same_[instruction.in[k]]].number.has_value();
    if (known) {
      const auto code = scalar_.code();
      const Scalar part = Scalar::from_code({code.begin(), code.begin() + i + 1});
      values_[i].number = element_cast<T>(part.evaluate({}, variables_));
      return;
    }
    const bool conjugates = kIsComplex<T> && instruction.op == Source::conjugate;
    if (instruction.op == Source::convert || (instruction.op == Source::conjugate && !conjugates)) {
      same_[i] = same_[instruction.in[0]];  // computed in the widest dtype throughout
      return;
    }
    std::uint32_t in[4];
    for (std::size_t k = 0; k < 4; ++k) in[k] = k < Scalar::arity(instruction.op) ? same_[instruction.in[k]] : 0;
    values_[i].step = step_of(instruction.op, in);
  }

  Step step_of(Source op, const std::uint32_t (&in)[4]) {
    switch (op) {
      case Source::add:
        return sum(in[0], in[1]);
      case Source::multiply:
        return product(in[0], in[1]);
      case Source::power:
        return power(in[0], in[1]);
      case Source::exp:
        return {Op::exp, {in[0]}};
      case Source::log:
        return {Op::log, {in[0]}};
      case Source::tanh:
        return {Op::tanh, {in[0]}};
      case Source::conjugate:
        return {Op::conjugate, {in[0]}};
      case Source::select:
        if (in[2] == in[1] && in[3] == in[0]) return {Op::maximum, {in[0], in[1]}};
        if (in[2] == in[0] && in[3] == in[1]) return {Op::minimum, {in[0], in[1]}};
        return {Op::select, {in[0], in[1], in[2], in[3]}};
      default:
        throw InternalError("lane code: a source is no step; required an operation");
    }
  }

  // Returns the operand of -1 · operand, or of operand^-1.
  std::optional<std::uint32_t> operand_of(std::uint32_t i, Op op, T value) const {
    const std::optional<Step>& step = values_[i].step;
    return step && step->op == op && step->value == value ? std::optional(step->in[0]) : std::nullopt;
  }

  Step sum(std::uint32_t a, std::uint32_t b) const {
    if (values_[a].number) std::swap(a, b);
    if (values_[b].number) return {Op::add_constant, {a}, 0, *values_[b].number};
    if (const auto negated = operand_of(b, Op::scale, T(-1))) return {Op::subtract, {a, *negated}};
    if (const auto negated = operand_of(a, Op::scale, T(-1))) return {Op::subtract, {b, *negated}};
    return {Op::add, {a, b}};
  }

  Step product(std::uint32_t a, std::uint32_t b) const {
    if (values_[a].number) std::swap(a, b);
    if (values_[b].number) return {Op::scale, {a}, 0, *values_[b].number};
    if (const auto divisor = operand_of(b, Op::reciprocal, T(0))) return {Op::divide, {a, *divisor}};
    if (const auto divisor = operand_of(a, Op::reciprocal, T(0))) return {Op::divide, {b, *divisor}};
    return a == b ? Step{Op::square, {a}} : Step{Op::multiply, {a, b}};
  }

  Step power(std::uint32_t base, std::uint32_t exponent) const {
    const std::optional<T>& number = values_[exponent].number;
    if (number && *number == T(-1)) return {Op::reciprocal, {base}};
    if (number && *number == T(2)) return {Op::square, {base}};
    if (number && *number == T(3)) return {Op::cube, {base}};
    if (number && *number == T(0.5)) return {Op::square_root, {base}};
    if (number && *number == T(-0.5)) return {Op::reciprocal_root, {base}};
    return {Op::power, {base, exponent}};
  }

  void mark_needed(std::uint32_t result) {
    last_reader_.assign(values_.size(), 0);
    values_[same_[result]].needed = true;
    for (std::uint32_t i = result + 1; i-- > 0;) {
      if (!values_[i].needed || !values_[i].step) continue;
      const Step& step = *values_[i].step;
      for (std::size_t k = 0; k < arity(step.op); ++k) {
        values_[step.in[k]].needed = true;
        last_reader_[step.in[k]] = std::max(last_reader_[step.in[k]], i);
      }
    }
  }

  void emit(LaneCode& code, std::uint32_t result) {
    place_.resize(values_.size(), 0);
    result = same_[result];
    for (std::uint32_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (!value.needed) continue;
      if (value.argument) {
        place_[i] = *value.argument;
        code.reads_[*value.argument] = 1;
        if (i == result) code.steps_.push_back({Op::copy, {place_[i]}});
      } else if (value.number) {
        if (i == result) {
          code.steps_.push_back({Op::constant, {}, 0, *value.number});
        } else {  // an operand of a step that has no form for numbers
          place_[i] = take_new(code);
          code.constants_.emplace_back(place_[i] - code.argument_count_, *value.number);
        }
      } else {
        emit_step(code, i, *value.step, i == result);
      }
    }
  }

  void emit_step(LaneCode& code, std::uint32_t i, Step step, bool last) {
    const Step source = step;
    for (std::size_t k = 0; k < arity(step.op); ++k) step.in[k] = place_[source.in[k]];
    if (!last) step.out = place_[i] = take(code);  // before its operands are free: a loop never writes what it reads
    code.steps_.push_back(step);
    for (std::size_t k = 0; k < arity(step.op); ++k) {
      const std::uint32_t in = source.in[k];
      if (last_reader_[in] != i || !values_[in].step) continue;
      free_.push_back(place_[in]);
      last_reader_[in] = static_cast<std::uint32_t>(values_.size());  // once
    }
  }

  // Constants are there before the first step, so they cannot have the register of one.
  static std::uint32_t take_new(LaneCode& code) {
    return code.argument_count_ + static_cast<std::uint32_t>(code.register_count_++);
  }

  std::uint32_t take(LaneCode& code) {
    if (free_.empty()) return take_new(code);
    const std::uint32_t result = free_.back();
    free_.pop_back();
    return result;
  }

  const Scalar& scalar_;
  const program::Variables& variables_;
  std::vector<Value> values_;        // by instruction
  std::vector<std::uint32_t> same_;  // by instruction: the one with its value
  std::vector<std::uint32_t> last_reader_, place_, free_;
};

template <typename T>
LaneCode<T>::LaneCode(const Scalar& scalar, const program::Variables& variables) {
  Compiler(scalar, variables).compile(*this);
}

template <typename T>
void LaneCode<T>::prepare(T* registers) const {
  for (const auto& [place, value] : constants_) std::fill_n(registers + place * kLaneSize, kLaneSize, value);
}

template <typename T>
void LaneCode<T>::run(std::span<const T* const> arguments, T* registers, T* output, std::size_t count) const {
  for (const Step& step : steps_) {
    const T* in[4];
    for (std::size_t k = 0; k < 4; ++k)
      in[k] =
          step.in[k] < argument_count_ ? arguments[step.in[k]] : registers + (step.in[k] - argument_count_) * kLaneSize;
    const bool last = &step == &steps_.back();
    apply(step, in, last ? output : registers + (step.out - argument_count_) * kLaneSize, count);
  }
}

template <typename T>
void LaneCode<T>::apply(const Step& step, const T* const* in, T* out, std::size_t count) {
  const T value = step.value;
  const auto one = [&](auto f) { loop1(in[0], out, count, f); };
  const auto two = [&](auto f) { loop2(in[0], in[1], out, count, f); };
  switch (step.op) {
    case Op::copy:
      return one([](T a) { return a; });
    case Op::constant:
      return void(std::fill_n(out, count, value));
    case Op::add:
      return two([](T a, T b) { return a + b; });
    case Op::add_constant:
      return one([value](T a) { return a + value; });
    case Op::subtract:
      return two([](T a, T b) { return a - b; });
    case Op::multiply:
      return two([](T a, T b) { return times(a, b); });
    case Op::scale:
      return one([value](T a) { return times(a, value); });
    case Op::divide:
      return two([](T a, T b) { return a / b; });
    case Op::reciprocal:
      return one([](T a) { return T(1) / a; });
    case Op::square:
      return one([](T a) { return times(a, a); });
    case Op::cube:
      return one([](T a) { return times(times(a, a), a); });
    case Op::square_root:
      return one([](T a) { return std::sqrt(a); });
    case Op::reciprocal_root:
      return one([](T a) { return T(1) / std::sqrt(a); });
    case Op::power:
      return two([](T a, T b) { return std::pow(a, b); });
    case Op::exp:
      return exp_of(in[0], out, count);
    case Op::log:
      return log_of(in[0], out, count);
    case Op::tanh:
      return tanh_of(in[0], out, count);
    case Op::conjugate:
      return one([](T a) { return element_cast<T>(std::conj(a)); });
    case Op::maximum:
      return two([](T a, T b) { return less(a, b) ? b : a; });
    case Op::minimum:
      return two([](T a, T b) { return less(a, b) ? a : b; });
    case Op::select:
      for (std::size_t i = 0; i < count; ++i) out[i] = less(in[0][i], in[1][i]) ? in[2][i] : in[3][i];
      return;
  }
}

template class LaneCode<float>;
template class LaneCode<double>;
template class LaneCode<std::complex<float>>;
template class LaneCode<std::complex<double>>;

}  // namespace doppler
