#include "doppler/program/expr/autodiff.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

using Labels = std::vector<std::string>;

// A gradient as the sum of a constant in every element, kept symbolic as long as possible because constants
// let whole branches vanish, and tensors.
struct Gradient {
  double constant = 0;
  std::vector<Expr> tensors;

  bool zero() const { return constant == 0 && tensors.empty(); }
};

class Backward {
 public:
  Backward(Program& program, ExprId loss, const std::vector<Expr>& wanted)
      : p_(program), gradient_(loss + 1), needed_(loss + 1, 0), formation_of_(loss + 1, 0) {
    for (const Expr expr : wanted)
      if (expr.id <= loss) needed_[expr.id] = 1;
    for (ExprId id = 0; id <= loss; ++id)
      for (const ExprId input : p_.node(id).inputs) needed_[id] |= needed_[input];
    gradient_[loss].constant = 1;
    for (ExprId id = loss + 1; id-- > 0;)
      if (needed_[id] && !gradient_[id].zero()) visit(id);
  }

  Expr result(Expr expr) {
    if (expr.id >= gradient_.size() || gradient_[expr.id].tensors.empty())
      return materialise(expr.id, expr.id < gradient_.size() ? gradient_[expr.id].constant : 0);
    return *combined(expr.id);
  }

 private:
  Expr materialise(ExprId like, double value) {
    return p_.fill(p_.node(like).shape, p_.node(like).dtype, {.value = value, .above = value}, "constant");
  }

  // The gradient as one tensor, or nothing if it is a constant.
  std::optional<Expr> combined(ExprId id) {
    Gradient& g = gradient_[id];
    if (g.tensors.empty()) return std::nullopt;
    if (g.tensors.size() > 1 || g.constant != 0) {
      Scalar sum = g.constant;
      for (std::uint32_t k = 0; k < g.tensors.size(); ++k) sum = sum + Scalar::argument(k);
      g = {0, {p_.map(g.tensors, sum, "accumulate")}};
    }
    return g.tensors[0];
  }
  Expr tensor(ExprId id) {
    const std::optional<Expr> g = combined(id);
    return g ? *g : materialise(id, gradient_[id].constant);
  }

  void visit(ExprId id) {
    const Node node = p_.node(id);  // a copy: adding expressions moves nodes
    if (node.as<Input>() != nullptr || node.as<Fill>() != nullptr) return;
    if (const Einsum* einsum = node.as<Einsum>()) return visit_einsum(id, node, *einsum);
    if (node.as<Formation>() != nullptr) {
      formation_of_[node.inputs[0]] = id;
      combined(id);
      gradient_[node.inputs[0]] = gradient_[id];
      return;
    }
    if (node.as<Stencil>() != nullptr)
      throw InputError(fmt::format("gradient of '{}': found a {}; required an einsum", node.name, kernel_kind(node)));
    if (const Concat* concat = node.as<Concat>()) return visit_concat(id, node, *concat);
    Gradient& to = gradient_[node.inputs[0]];
    const Shape shape = p_.node(node.inputs[0]).shape;
    if (const Select* select = node.as<Select>())
      to.tensors.push_back(padded(tensor(id), select->region, shape));
    else if (node.as<Complexer>() != nullptr)
      to.tensors.push_back(is_complex(node.dtype) ? p_.to_real(tensor(id)) : p_.to_complex(tensor(id)));
    else if (const std::optional<Expr> g = combined(id))
      to.tensors.push_back(p_.reshape_ones(*g, shape));
    else
      to.constant += gradient_[id].constant;
  }

  void visit_concat(ExprId id, const Node& node, const Concat& concat) {
    const std::optional<Expr> g = combined(id);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!needed_[node.inputs[k]]) continue;
      if (!g) {
        gradient_[node.inputs[k]].constant += gradient_[id].constant;
        continue;
      }
      const Shape shape = p_.node(node.inputs[k]).shape;
      Shape offset(shape.size(), 0);
      offset[concat.axis] = concat.begins[k];
      gradient_[node.inputs[k]].tensors.push_back(p_.select(*g, shifted(Rect::whole(shape), offset)));
    }
  }

  // Zeros around, one dimension after the other.
  Expr padded(Expr g, const Rect& region, const Shape& shape) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      std::vector<Expr> row;
      const auto zeros = [&](Index size) {
        if (size == 0) return;
        Shape part = g.shape();
        part[axis] = size;
        row.push_back(p_.fill(part, g.dtype(), {}, "zeros"));
      };
      zeros(region.begin[axis]);
      row.push_back(g);
      zeros(shape[axis] - region.end[axis]);
      if (row.size() > 1) g = p_.concat(row, axis);
    }
    return g;
  }

  // What the gradient of an einsum is made of: expressions with their labels, and their product as a scalar.
  struct Term {
    std::vector<Expr> operands;
    Program::LabelLists labels;
    Scalar value = 1.0;

    Scalar add(Expr expr, Labels names) {
      operands.push_back(expr);
      labels.push_back(std::move(names));
      return Scalar::argument(static_cast<std::uint32_t>(operands.size() - 1));
    }
  };

  static Labels names(const Einsum& einsum, const std::vector<std::uint32_t>& ids) {
    Labels result;
    for (const std::uint32_t id : ids) result.push_back(einsum.labels[id]);
    return result;
  }

  void visit_einsum(ExprId id, const Node& node, const Einsum& einsum) {
    const Labels output(einsum.labels.begin(), einsum.labels.begin() + static_cast<std::ptrdiff_t>(node.shape.size()));
    const std::optional<Expr> g = combined(id);
    std::optional<Expr> ties;  // how many elements attain a maximum, found once for all operands
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      if (!needed_[node.inputs[i]]) continue;
      const Scalar slope = einsum.join.derivative(i);
      if (slope.is_constant(0)) continue;
      Term term;
      term.value = g ? term.add(*g, output) : Scalar(gradient_[id].constant);
      std::vector<Scalar> arguments;
      const auto needs_join = einsum.aggregate && *einsum.aggregate != Aggregate::sum;
      for (std::uint32_t k = 0; k < node.inputs.size(); ++k) {
        const bool used = slope.reads(k) || (needs_join && einsum.join.reads(k));
        arguments.push_back(used ? term.add(p_.expr(node.inputs[k]), names(einsum, einsum.operands[k])) : 0.0);
      }
      const Scalar inner = slope.substitute(arguments);
      term.value = term.value * (is_complex(node.dtype) ? conj(inner) : inner);
      if (needs_join) weigh(id, node, einsum, output, term, einsum.join.substitute(arguments), ties);
      add_term(node.inputs[i], einsum, names(einsum, einsum.operands[i]), std::move(term));
    }
  }

  // The share of one element in an aggregation that is no sum: Z/x of a product, the indicator of a maximum.
  void weigh(ExprId id, const Node& node, const Einsum& einsum, const Labels& output, Term& term, const Scalar& joined,
             std::optional<Expr>& ties) {
    const Expr z = p_.expr(formation_of_[id]);
    if (*einsum.aggregate == Aggregate::product) {
      term.value = term.value * term.add(z, output) / joined;
      return;
    }
    if (!ties) {
      Term count;
      std::vector<Scalar> arguments;
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        arguments.push_back(count.add(p_.expr(node.inputs[k]), names(einsum, einsum.operands[k])));
      count.value = if_equal(einsum.join.substitute(arguments), count.add(z, output), 1.0, 0.0);
      ties = p_.einsum(count.labels, output, count.operands,
                       {.join = count.value, .sizes = sizes(einsum), .name = "ties"});
    }
    const Scalar attains = if_equal(joined, term.add(z, output), 1.0, 0.0);
    term.value = term.value * attains / term.add(*ties, output);
  }

  static std::map<std::string, Index> sizes(const Einsum& einsum) {
    std::map<std::string, Index> result;
    for (std::size_t i = 0; i < einsum.labels.size(); ++i) result[einsum.labels[i]] = einsum.sizes[i];
    return result;
  }

  // Sums the term over the labels that `target` lacks and adds it to the gradient of `input`.
  void add_term(ExprId input, const Einsum& einsum, const Labels& target, Term term) {
    if (term.value.is_constant()) term.labels.clear();
    for (std::size_t i = 0; i < einsum.labels.size(); ++i) {
      const auto has = [&](const Labels& list) {
        return std::find(list.begin(), list.end(), einsum.labels[i]) != list.end();
      };
      // A label that the term does not vary along only repeats it.
      if (!has(target) && std::none_of(term.labels.begin(), term.labels.end(), has))
        term.value = static_cast<double>(einsum.sizes[i]) * term.value;
    }
    Gradient& to = gradient_[input];
    if (term.value.is_constant()) {
      to.constant += term.value.constant();
      return;
    }
    const DType wanted = p_.node(input).dtype;
    std::vector<DType> dtypes;
    for (const Expr operand : term.operands) dtypes.push_back(operand.dtype());
    if (term.value.dtype(dtypes) != wanted) term.value = convert(wanted, term.value);
    if (term.operands.size() == 1 && term.value == Scalar::argument(0) && term.labels[0] == target) {
      to.tensors.push_back(term.operands[0]);
      return;
    }
    to.tensors.push_back(p_.einsum(term.labels, target, term.operands,
                                   {.join = term.value, .sizes = sizes(einsum), .name = p_.node(input).name}));
  }

  Program& p_;
  std::vector<Gradient> gradient_;
  std::vector<char> needed_;
  std::vector<ExprId> formation_of_;
};

void update_sgd(Expr w, Expr g, const Scalar& rate) {
  Program& p = *w.program;
  const Scalar step = Scalar::argument(0) - rate * Scalar::argument(1);
  p.mark_update(w, p.map({w, g}, step, p.node(w.id).name + ".next"));
}

void update_adam(Expr w, Expr g, const Scalar& rate) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
  Program& p = *w.program;
  const std::string name = p.node(w.id).name;
  const DType wide = w.dtype() == DType::f16 ? DType::f32 : w.dtype();
  const auto widened = [&](const Scalar& x) { return wide == w.dtype() ? x : convert(wide, x); };
  const Scalar x = Scalar::argument(0), gradient = widened(Scalar::argument(1));
  const Expr m = p.input(name + ".m", w.shape(), wide), v = p.input(name + ".v", w.shape(), wide);
  const Expr next_m = p.map({m, g}, kBeta1 * x + (1 - kBeta1) * gradient, name + ".m.next");
  const Expr next_v = p.map({v, g}, kBeta2 * x + (1 - kBeta2) * gradient * gradient, name + ".v.next");
  const Scalar mean = Scalar::argument(1) / (1 - Scalar::variable("beta1_power"));
  const Scalar spread = Scalar::argument(2) / (1 - Scalar::variable("beta2_power"));
  Scalar next = widened(x) - rate * mean / (sqrt(spread) + kEpsilon);
  if (wide != w.dtype()) next = convert(w.dtype(), next);
  p.mark_update(m, next_m);
  p.mark_update(v, next_v);
  p.mark_update(w, p.map({w, next_m, next_v}, next, name + ".next"));
}

}  // namespace

std::vector<Expr> gradients(Expr loss, const std::vector<Expr>& with_respect_to) {
  Program& p = *loss.program;
  const Node& node = p.node(loss.id);
  if (!node.shape.empty() || is_complex(node.dtype))
    throw InputError(fmt::format("loss '{}': found {} {}; required a real scalar", node.name, to_string(node.dtype),
                                 to_string(node.shape)));
  const Program::Scope scope(p, "grad");
  Backward backward(p, loss.id, with_respect_to);
  std::vector<Expr> result;
  for (const Expr expr : with_respect_to) result.push_back(backward.result(expr));
  return result;
}

Optimizer parse_optimizer(std::string_view text) {
  if (text == "sgd") return Optimizer::sgd;
  if (text == "adam") return Optimizer::adam;
  throw InputError(fmt::format("train: found '{}'; required sgd or adam", text));
}

void add_training_step(Expr loss, Optimizer optimizer) {
  Program& p = *loss.program;
  std::vector<char> reached(p.size(), 0);
  reached[loss.id] = 1;
  for (ExprId id = loss.id + 1; id-- > 0;)
    if (reached[id])
      for (const ExprId input : p.node(id).inputs) reached[input] = 1;
  std::vector<Expr> weights;
  for (const ExprId id : p.weights()) {
    if (!reached[id])
      throw InputError(fmt::format("train: weight '{}' does not reach the loss '{}'; required one that does",
                                   p.node(id).name, p.node(loss.id).name));
    weights.push_back(p.expr(id));
  }
  if (weights.empty()) throw InputError("train: found no weights; required at least one");
  const std::vector<Expr> slopes = gradients(loss, weights);
  const Scalar rate = Scalar::variable("learning_rate");
  for (std::size_t i = 0; i < weights.size(); ++i)
    optimizer == Optimizer::sgd ? update_sgd(weights[i], slopes[i], rate) : update_adam(weights[i], slopes[i], rate);
  p.set_outputs({loss});
}

}  // namespace doppler::program
