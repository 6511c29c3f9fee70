#include <algorithm>
#include <array>
#include <map>

#include "doppler/kernels/onnx/matmul.h"

namespace doppler::model {
namespace {

// Labels are letters; the dimensions of an ellipsis are numbers below 'A', from its last on.
using Term = std::vector<int>;

struct EinsumPlan {
  Shape out, summed;                                        // sizes of the labels that stay, and of those that go
  std::vector<std::vector<Index>> out_steps, summed_steps;  // per operand
};

Term parse_term(const std::string& text, std::size_t rank) {
  Term term;
  const auto letters =
      static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return c != '.'; }));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.') {
      if (text.compare(i, 3, "...") != 0 || letters > rank)
        refuse(fmt::format("term '{}'", text), "letters and one '...'");
      for (std::size_t d = rank - letters; d > 0; --d) term.push_back(static_cast<int>(d));
      i += 2;
    } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
      term.push_back(text[i]);
    } else {
      refuse(fmt::format("term '{}'", text), "letters and '...'");
    }
  }
  return term;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

EinsumPlan plan_einsum(const Spec& spec) {
  std::string equation = spec.text("equation", "");
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string> terms = split(equation.substr(0, arrow));
  if (terms.size() != spec.inputs())
    refuse(fmt::format("equation '{}' for {} inputs", equation, spec.inputs()), "as many terms");
  std::vector<Term> inputs;
  std::map<int, Index> sizes;
  std::map<int, int> uses;
  std::size_t ellipsis = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    inputs.push_back(parse_term(terms[i], spec.rank(i)));
    if (inputs[i].size() != spec.rank(i))
      refuse(fmt::format("term '{}' for {}", terms[i], program::to_string(spec.shape(i))), "a letter per dimension");
    for (std::size_t d = 0; d < inputs[i].size(); ++d) {
      const int label = inputs[i][d];
      if (label < 'A') ellipsis = std::max(ellipsis, static_cast<std::size_t>(label));
      Index& size = sizes.emplace(label, 1).first->second;
      const Index found = spec.shape(i)[d];
      if (size != found && size != 1 && found != 1)
        refuse(fmt::format("sizes {} and {} of a label", size, found), "one");
      size = std::max(size, found) * (size == 0 || found == 0 ? 0 : 1);
      ++uses[label];
    }
  }
  Term output;
  if (arrow != std::string::npos) {
    const std::string text = equation.substr(arrow + 2);
    const auto letters =
        static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return c != '.'; }));
    output = parse_term(text, letters + (letters < text.size() ? ellipsis : 0));
  } else {
    for (std::size_t d = ellipsis; d > 0; --d) output.push_back(static_cast<int>(d));
    for (const auto& [label, count] : uses)
      if (label >= 'A' && count == 1) output.push_back(label);
  }
  EinsumPlan plan;
  std::vector<int> summed;
  for (const int label : output) {
    if (!sizes.contains(label) || std::count(output.begin(), output.end(), label) != 1)
      refuse(fmt::format("equation '{}'", equation), "each label of the output once, and in an input");
    plan.out.push_back(sizes.at(label));
  }
  for (const auto& [label, size] : sizes)
    if (std::find(output.begin(), output.end(), label) == output.end()) {
      summed.push_back(label);
      plan.summed.push_back(size);
    }
  plan.out = checked_shape(std::move(plan.out));
  checked_shape(plan.summed);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Index> steps = row_major_steps(spec.shape(i));
    const auto step_of = [&](int label) {
      Index step = 0;  // a label that stands twice is a diagonal
      for (std::size_t d = 0; d < inputs[i].size(); ++d)
        if (inputs[i][d] == label && spec.shape(i)[d] != 1) step += steps[d];
      return step;
    };
    std::vector<Index> out_steps, summed_steps;
    for (const int label : output) out_steps.push_back(step_of(label));
    for (const int label : summed) summed_steps.push_back(step_of(label));
    plan.out_steps.push_back(std::move(out_steps));
    plan.summed_steps.push_back(std::move(summed_steps));
  }
  return plan;
}

// Goes to the next index of `sizes` and moves the offsets along; returns false after the last.
constexpr std::size_t kMostOperands = 16;
using Offsets = std::array<Index, kMostOperands>;
bool next_index(const Shape& sizes, const std::vector<std::vector<Index>>& steps,
                std::array<Index, kMostDimensions>& at, Offsets& offsets) {
  for (std::size_t d = sizes.size(); d-- > 0;) {
    for (std::size_t o = 0; o < steps.size(); ++o) offsets[o] += steps[o][d];
    if (++at[d] < sizes[d]) return true;
    for (std::size_t o = 0; o < steps.size(); ++o) offsets[o] -= steps[o][d] * sizes[d];
    at[d] = 0;
  }
  return false;
}

// Returns the product that two operands are, if they are one: labels of the output that both have are batches, then
// come those of the first and those of the second; the rest is summed.
std::optional<Product> as_product(const EinsumPlan& plan) {
  if (plan.out_steps.size() != 2 || plan.summed.size() != 1 || plan.out.size() < 2) return std::nullopt;
  const auto& a = plan.out_steps[0];
  const auto& b = plan.out_steps[1];
  const std::size_t rank = plan.out.size();
  Product p;
  p.m = plan.out[rank - 2];
  p.n = plan.out[rank - 1];
  p.k = plan.summed[0];
  p.a = {{}, a[rank - 2], plan.summed_steps[0][0]};
  p.b = {{}, plan.summed_steps[1][0], b[rank - 1]};
  if (a[rank - 1] != 0 || b[rank - 2] != 0 || p.a.row == 0 || p.a.column == 0 || p.b.row == 0 || p.b.column == 0)
    return std::nullopt;
  for (const Product::Operand* operand : {&p.a, &p.b})
    if (operand->row != 1 && operand->column != 1) return std::nullopt;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    p.batch.push_back(plan.out[i]);
    p.a.batch.push_back(a[i]);
    p.b.batch.push_back(b[i]);
  }
  return p;
}

}  // namespace

std::unique_ptr<NodeKernel> make_einsum(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, kMostOperands);
  for (std::size_t i = 1; i < spec.inputs(); ++i) spec.require_element(i, {spec.element(0)});
  const EinsumPlan plan = plan_einsum(spec);
  const std::optional<Product> product = as_product(plan);
  const Index count = program::product(plan.out), summed = program::product(plan.summed);
  const std::size_t operands = spec.inputs();
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), plan.out}}, [=](const Run& run) {
      T* out = run.out<T>(0);
      if constexpr (std::is_floating_point_v<T>)
        if (product) return run_product(*product, run.in<T>(0), run.in<T>(1), out);
      Offsets offsets{};
      std::array<Index, kMostDimensions> at{};
      for (Index i = 0; i < count; ++i) {
        // Integers wrap, which only unsigned ones may.
        using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
        Sum total{};
        Offsets inner = offsets;
        std::array<Index, kMostDimensions> inner_at{};
        for (Index s = 0; s < summed; ++s) {
          Sum term = static_cast<Sum>(run.in<T>(0)[inner[0]]);
          for (std::size_t o = 1; o < operands; ++o) term *= static_cast<Sum>(run.in<T>(o)[inner[o]]);
          total += term;
          next_index(plan.summed, plan.summed_steps, inner_at, inner);
        }
        out[i] = static_cast<T>(total);
        next_index(plan.out, plan.out_steps, at, offsets);
      }
    });
  });
}

}  // namespace doppler::model
