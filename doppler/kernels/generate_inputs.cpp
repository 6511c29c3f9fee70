#include "doppler/kernels/generate_inputs.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "doppler/base/rng.h"
#include "doppler/kernels/element.h"

namespace doppler {

using program::Einsum;
using program::ExprId;
using program::Index;
using program::Node;

namespace {

class Generator {
 public:
  Generator(const program::Program& program, std::uint64_t seed) : program_(program), rng_(seed) {
    readers_.resize(program.size());
    for (ExprId id = 0; id < program.size(); ++id)
      for (const ExprId input : program.node(id).inputs) readers_[input].push_back(id);
  }

  Arrays run() {
    const std::vector<char> updated = program_.updated_inputs();
    Arrays result;
    for (ExprId id = 0; id < program_.size(); ++id) {
      const program::Input* input = program_.node(id).as<program::Input>();
      if (input != nullptr) result.emplace(id, array(id, updated[id] && !input->weight));
    }
    return result;
  }

 private:
  Array array(ExprId id, bool zero) {
    const Node& node = program_.node(id);
    Array result(node.dtype, node.shape);
    Rng rng = rng_.split(id);
    with_element(fmt::format("input '{}'", node.name), node.dtype, [&](auto element) {
      using T = decltype(element);
      const std::span<T> values(reinterpret_cast<T*>(result.bytes.data()), result.count());
      if (zero)
        std::fill(values.begin(), values.end(), T(0));
      else if constexpr (kIsComplex<T>)
        for (T& value : values) value = element_cast<T>(std::polar(1.0, rng.uniform(0, 2 * std::numbers::pi)));
      else if (is_distribution(id))
        one_hot(values, node.shape.back(), rng);
      else
        uniform(values, 1 / std::sqrt(static_cast<double>(fan_in(id))), rng);
    });
    return result;
  }

  template <typename T>
  static void uniform(std::span<T> values, double deviation, Rng& rng) {
    const double bound = std::sqrt(3.0) * deviation;
    for (T& value : values) value = static_cast<T>(rng.uniform(-bound, bound));
  }

  template <typename T>
  static void one_hot(std::span<T> values, Index classes, Rng& rng) {
    std::fill(values.begin(), values.end(), T(0));
    for (std::size_t row = 0; row < values.size(); row += static_cast<std::size_t>(classes))
      values[row + rng.below(static_cast<std::uint32_t>(classes))] = 1;
  }

  // Returns the number of elements that the first contraction to read it sums up; 1 without one.
  Index fan_in(ExprId id) const {
    for (const ExprId reader : readers_[id]) {
      const Einsum* einsum = program_.node(reader).as<Einsum>();
      if (einsum == nullptr || !einsum->is_contraction()) continue;
      Index result = 1;
      for (std::size_t label = program_.node(reader).shape.size(); label < einsum->sizes.size(); ++label)
        result *= einsum->sizes[label];
      return result;
    }
    return 1;
  }

  // Whether it is read, perhaps after a conversion, by a product with something of the same labels that is summed over
  // the last.
  bool is_distribution(ExprId id) const {
    const Node& node = program_.node(id);
    if (node.shape.empty() || node.as<program::Input>()->weight) return false;
    ExprId read = id;
    while (readers_[read].size() == 1 && is_conversion(program_.node(readers_[read][0]))) read = readers_[read][0];
    return std::any_of(readers_[read].begin(), readers_[read].end(), [this](ExprId reader) {
      const Einsum* einsum = program_.node(reader).as<Einsum>();
      return einsum != nullptr && einsum->is_contraction() && einsum->operands[0] == einsum->operands[1] &&
             einsum->operands[0].back() + 1 == einsum->sizes.size() &&
             program_.node(reader).shape.size() + 1 == einsum->sizes.size();
    });
  }

  static bool is_conversion(const Node& node) {
    const Einsum* einsum = node.as<Einsum>();
    if (einsum == nullptr || einsum->aggregate || einsum->operands.size() != 1) return false;
    const auto code = einsum->join.code();
    return code.size() == 2 && code.back().op == program::Scalar::Op::convert;
  }

  const program::Program& program_;
  Rng rng_;
  std::vector<std::vector<ExprId>> readers_;  // by expression
};

}  // namespace

Arrays generate_inputs(const program::Program& program, std::uint64_t seed) { return Generator(program, seed).run(); }

program::Variables generate_variables(const program::Program& program) {
  const program::Variables known = {{"learning_rate", 1e-3}, {"beta1_power", 0.9}, {"beta2_power", 0.999}};
  program::Variables result;
  for (ExprId id = 0; id < program.size(); ++id) {
    const Einsum* einsum = program.node(id).as<Einsum>();
    if (einsum == nullptr) continue;
    for (const program::Scalar::Instruction& i : einsum->join.code())
      if (i.op == program::Scalar::Op::variable)
        result[i.name] = known.contains(i.name) ? known.find(i.name)->second : 1;
  }
  return result;
}

std::optional<program::ExprId> find_input(const program::Program& program, std::string_view name) {
  std::optional<program::ExprId> found;
  for (program::ExprId id = 0; id < program.size(); ++id)
    if (program.node(id).name == name && program.node(id).as<program::Input>() != nullptr) found = id;
  return found;
}

}  // namespace doppler
