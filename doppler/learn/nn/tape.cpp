#include "doppler/learn/nn/tape.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

constexpr double kVarianceFloor = 1e-5;  // layer_norm: as libtorch has it

template <typename Real>
Real logistic(Real x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

}  // namespace

template <typename Real>
template <typename T>
T* Tape<Real>::Arena<T>::take(std::size_t count) {
  constexpr std::size_t kSmallestChunk = std::size_t{1} << 16;
  for (; chunk_ < chunks_.size(); ++chunk_, used_ = 0)
    if (chunks_[chunk_].size - used_ >= count) {
      used_ += count;
      return chunks_[chunk_].data.get() + used_ - count;
    }
  const std::size_t size = std::max(count, kSmallestChunk);
  chunks_.push_back({std::make_unique_for_overwrite<T[]>(size), size});
  used_ = count;
  return chunks_.back().data.get();
}

template <typename Real>
void Tape<Real>::clear() {
  nodes_.clear();
  reals_.clear();
  indices_.clear();
}

// Returns the uninitialised values of a new node. It has a gradient if one of its inputs has.
template <typename Real>
Real* Tape<Real>::push(Node node, std::size_t rows, std::size_t columns) {
  spend(rows * columns);
  node.rows = rows;
  node.columns = columns;
  Real* const value = reals_.take(rows * columns);
  node.value = value;
  if (with_gradients_ && (depends(node.a) || depends(node.b) || depends(node.c))) {
    node.gradient = reals_.take(rows * columns);
    std::fill_n(node.gradient, rows * columns, Real{0});
  }
  nodes_.push_back(node);
  return value;
}

template <typename Real>
auto Tape<Real>::constant(std::size_t rows, std::size_t columns, const Real* values) -> Matrix {
  Node node;
  node.rows = rows;
  node.columns = columns;
  node.value = values;
  nodes_.push_back(node);
  return last();
}

template <typename Real>
auto Tape<Real>::parameter(std::size_t rows, std::size_t columns, const Real* values, Real* gradient) -> Matrix {
  const Matrix matrix = constant(rows, columns, values);
  if (with_gradients_) nodes_.back().gradient = gradient;
  return matrix;
}

template <typename Real>
auto Tape<Real>::product(Matrix a, Matrix b) -> Matrix {
  const std::size_t rows = row_count(a), inner = column_count(a), columns = column_count(b);
  DOPPLER_CHECK(inner == row_count(b), "product of {} columns and {} rows", inner, row_count(b));
  spend(rows * inner * columns);
  Node node{.kind = Kind::product, .a = a.id, .b = b.id};
  Real* y = push(node, rows, columns);
  std::fill_n(y, rows * columns, Real{0});
  dense::multiply_add(value(a).data(), value(b).data(), y, rows, inner, columns);
  return last();
}

template <typename Real>
auto Tape<Real>::product_transposed(Matrix a, Matrix b) -> Matrix {
  const std::size_t rows = row_count(a), inner = column_count(a), columns = row_count(b);
  DOPPLER_CHECK(inner == column_count(b), "product of {} columns and {} columns", inner, column_count(b));
  spend(rows * inner * columns);
  Real* y = push({.kind = Kind::product_transposed, .a = a.id, .b = b.id}, rows, columns);
  std::fill_n(y, rows * columns, Real{0});
  dense::multiply_transposed_add(value(a).data(), value(b).data(), y, rows, columns, inner, scratch_);
  return last();
}

template <typename Real>
auto Tape<Real>::affine(Matrix x, Matrix weights, Matrix bias) -> Matrix {
  return sum(product(x, weights), bias);
}

template <typename Real>
auto Tape<Real>::sum(Matrix a, Matrix b) -> Matrix {
  const std::size_t rows = row_count(a), columns = column_count(a), period = row_count(b) * columns;
  DOPPLER_CHECK(column_count(b) == columns && (row_count(b) == rows || row_count(b) == 1), "sum of unequal sizes");
  Real* y = push({.kind = Kind::sum, .a = a.id, .b = b.id}, rows, columns);
  const Real *left = value(a).data(), *right = value(b).data();
  for (std::size_t begin = 0; begin < rows * columns; begin += period)
    for (std::size_t i = 0; i < period; ++i) y[begin + i] = left[begin + i] + right[i];
  return last();
}

template <typename Real>
auto Tape<Real>::elementwise(Matrix a, Matrix b) -> Matrix {
  DOPPLER_CHECK(value(a).size() == value(b).size(), "elementwise product of unequal sizes");
  Real* y = push({.kind = Kind::elementwise, .a = a.id, .b = b.id}, row_count(a), column_count(a));
  for (std::size_t i = 0; i < value(a).size(); ++i) y[i] = value(a)[i] * value(b)[i];
  return last();
}

template <typename Real>
auto Tape<Real>::scaled_rows(Matrix a, Matrix by) -> Matrix {
  DOPPLER_CHECK(column_count(by) == 1 && row_count(by) == row_count(a), "a factor for each of {} rows", row_count(a));
  const std::size_t columns = column_count(a);
  Real* y = push({.kind = Kind::scaled_rows, .a = a.id, .b = by.id}, row_count(a), columns);
  for (std::size_t row = 0; row < row_count(a); ++row)
    for (std::size_t i = 0; i < columns; ++i) y[row * columns + i] = value(a)[row * columns + i] * value(by)[row];
  return last();
}

template <typename Real>
auto Tape<Real>::row_dots(Matrix a, Matrix b) -> Matrix {
  const std::size_t rows = row_count(a), columns = column_count(a), stride = row_count(b) == 1 ? 0 : columns;
  DOPPLER_CHECK(column_count(b) == columns && (stride == 0 || row_count(b) == rows), "dots of unequal sizes");
  Real* y = push({.kind = Kind::row_dots, .a = a.id, .b = b.id}, rows, 1);
  for (std::size_t row = 0; row < rows; ++row) {
    const Real *left = value(a).data() + row * columns, *right = value(b).data() + row * stride;
    Real total = 0;
    for (std::size_t i = 0; i < columns; ++i) total += left[i] * right[i];
    y[row] = total;
  }
  return last();
}

template <typename Real>
template <typename Function>
auto Tape<Real>::map(Kind kind, Matrix a, Function function) -> Matrix {
  Real* y = push({.kind = kind, .a = a.id}, row_count(a), column_count(a));
  std::transform(value(a).begin(), value(a).end(), y, function);
  return last();
}

template <typename Real>
auto Tape<Real>::scaled(Matrix a, Real factor) -> Matrix {
  map(Kind::scaled, a, [factor](Real x) { return factor * x; });
  nodes_.back().number = factor;
  return last();
}

template <typename Real>
auto Tape<Real>::relu(Matrix a) -> Matrix {
  return map(Kind::relu, a, [](Real x) { return std::max(x, Real{0}); });
}

template <typename Real>
auto Tape<Real>::tanh(Matrix a) -> Matrix {
  return map(Kind::tanh, a, [](Real x) { return std::tanh(x); });
}

template <typename Real>
auto Tape<Real>::sigmoid(Matrix a) -> Matrix {
  return map(Kind::sigmoid, a, [](Real x) { return logistic(x); });
}

template <typename Real>
auto Tape<Real>::softmax(Matrix a) -> Matrix {
  const std::size_t columns = column_count(a);
  Real* y = push({.kind = Kind::softmax, .a = a.id}, row_count(a), columns);
  for (std::size_t row = 0; row < row_count(a); ++row) {
    const Real* x = value(a).data() + row * columns;
    Real* to = y + row * columns;
    const Real largest = *std::max_element(x, x + columns);
    Real total = 0;
    for (std::size_t i = 0; i < columns; ++i) total += to[i] = std::exp(x[i] - largest);
    for (std::size_t i = 0; i < columns; ++i) to[i] /= total;
  }
  return last();
}

template <typename Real>
auto Tape<Real>::layer_norm(Matrix x, Matrix gain, Matrix bias) -> Matrix {
  const std::size_t rows = row_count(x), columns = column_count(x);
  DOPPLER_CHECK(value(gain).size() == columns && value(bias).size() == columns, "gain and bias of {} columns", columns);
  Node node{.kind = Kind::layer_norm, .a = x.id, .b = gain.id, .c = bias.id};
  node.extra = reals_.take(rows * columns + rows);
  Real* const normalised = node.extra;
  Real* const inverse = node.extra + rows * columns;
  Real* y = push(node, rows, columns);
  for (std::size_t row = 0; row < rows; ++row) {
    const Real* from = value(x).data() + row * columns;
    Real mean = 0, variance = 0;
    for (std::size_t i = 0; i < columns; ++i) mean += from[i];
    mean /= static_cast<Real>(columns);
    for (std::size_t i = 0; i < columns; ++i) variance += (from[i] - mean) * (from[i] - mean);
    inverse[row] = 1 / std::sqrt(variance / static_cast<Real>(columns) + static_cast<Real>(kVarianceFloor));
    for (std::size_t i = 0; i < columns; ++i) {
      normalised[row * columns + i] = (from[i] - mean) * inverse[row];
      y[row * columns + i] = normalised[row * columns + i] * value(gain)[i] + value(bias)[i];
    }
  }
  return last();
}

template <typename Real>
auto Tape<Real>::messages(Matrix a, std::span<const std::uint32_t> from, std::span<const std::uint32_t> to,
                          std::size_t count, std::span<const Real> weight) -> Matrix {
  const std::size_t columns = column_count(a);
  const std::size_t edges = from.empty() ? to.size() : from.size();
  Real* y = push({.kind = Kind::messages, .a = a.id, .from = from, .to = to, .weight = weight}, count, columns);
  std::fill_n(y, count * columns, Real{0});
  for (std::size_t e = 0; e < edges; ++e) {
    const Real* source = value(a).data() + (from.empty() ? e : from[e]) * columns;
    Real* target = y + (to.empty() ? e : to[e]) * columns;
    const Real factor = weight.empty() ? Real{1} : weight[e];
    if (columns % kBlock == 0) {
      dense::add_scaled(factor, source, target, columns);
    } else {
      for (std::size_t i = 0; i < columns; ++i) target[i] += factor * source[i];
    }
  }
  return last();
}

template <typename Real>
auto Tape<Real>::rows(Matrix a, std::span<const std::uint32_t> which) -> Matrix {
  return messages(a, which, {}, which.size());
}

template <typename Real>
auto Tape<Real>::row_sums(Matrix a, std::span<const std::uint32_t> to, std::size_t count, std::span<const Real> weight)
    -> Matrix {
  DOPPLER_CHECK(to.size() == row_count(a), "{} rows go to {} places", row_count(a), to.size());
  return messages(a, {}, to, count, weight);
}

template <typename Real>
auto Tape<Real>::message_maxima(Matrix a, std::span<const std::uint32_t> from, std::span<const std::uint32_t> to,
                                std::size_t count) -> Matrix {
  const std::size_t columns = column_count(a);
  Node node{.kind = Kind::row_maxima, .a = a.id};
  node.chosen = indices_.take(count * columns);
  std::fill_n(node.chosen, count * columns, kNone);
  Real* y = push(node, count, columns);
  std::fill_n(y, count * columns, Real{0});
  for (std::size_t e = 0; e < to.size(); ++e) {
    const auto row = from.empty() ? static_cast<std::uint32_t>(e) : from[e];
    const Real* x = value(a).data() + row * columns;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t place = to[e] * columns + i;
      if (node.chosen[place] != kNone && x[i] <= y[place]) continue;
      node.chosen[place] = row;
      y[place] = x[i];
    }
  }
  return last();
}

template <typename Real>
auto Tape<Real>::row_maxima(Matrix a, std::span<const std::uint32_t> to, std::size_t count) -> Matrix {
  DOPPLER_CHECK(to.size() == row_count(a), "{} rows go to {} places", row_count(a), to.size());
  return message_maxima(a, {}, to, count);
}

template <typename Real>
auto Tape<Real>::beside(Matrix a, Matrix b) -> Matrix {
  const std::size_t rows = row_count(a), left = column_count(a), right = column_count(b);
  DOPPLER_CHECK(row_count(b) == rows, "{} rows beside {}", rows, row_count(b));
  Real* y = push({.kind = Kind::beside, .a = a.id, .b = b.id}, rows, left + right);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(value(a).data() + row * left, left, y + row * (left + right));
    std::copy_n(value(b).data() + row * right, right, y + row * (left + right) + left);
  }
  return last();
}

template <typename Real>
auto Tape<Real>::above(Matrix a, Matrix b) -> Matrix {
  DOPPLER_CHECK(column_count(a) == column_count(b), "{} columns above {}", column_count(a), column_count(b));
  Real* y = push({.kind = Kind::above, .a = a.id, .b = b.id}, row_count(a) + row_count(b), column_count(a));
  std::copy(value(b).begin(), value(b).end(), std::copy(value(a).begin(), value(a).end(), y));
  return last();
}

// In pairs, and then in pairs of these, so that nothing is copied more than log n times.
template <typename Real>
auto Tape<Real>::joined(std::vector<Matrix> parts) -> Matrix {
  while (parts.size() > 1) {
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) parts[i / 2] = above(parts[i], parts[i + 1]);
    if (parts.size() % 2 == 1) parts[parts.size() / 2] = parts.back();
    parts.resize((parts.size() + 1) / 2);
  }
  return parts.front();
}

template <typename Real>
auto Tape<Real>::columns(Matrix a, std::size_t first, std::size_t count) -> Matrix {
  const std::size_t rows = row_count(a), all = column_count(a);
  DOPPLER_CHECK(first + count <= all, "columns {} to {} of {}", first, first + count, all);
  Real* y = push({.kind = Kind::columns, .a = a.id, .first = first}, rows, count);
  for (std::size_t row = 0; row < rows; ++row) std::copy_n(value(a).data() + row * all + first, count, y + row * count);
  return last();
}

template <typename Real>
auto Tape<Real>::row_range(Matrix a, std::size_t first, std::size_t count) -> Matrix {
  DOPPLER_CHECK(first + count <= row_count(a), "rows {} to {} of {}", first, first + count, row_count(a));
  const std::size_t columns = column_count(a);
  Real* y = push({.kind = Kind::row_range, .a = a.id, .first = first}, count, columns);
  std::copy_n(value(a).data() + first * columns, count * columns, y);
  return last();
}

// Another name for the same numbers: what is added to its gradient is added to that of `a`.
template <typename Real>
auto Tape<Real>::reshaped(Matrix a, std::size_t rows, std::size_t columns) -> Matrix {
  DOPPLER_CHECK(rows * columns == value(a).size(), "{} elements as {} x {}", value(a).size(), rows, columns);
  return parameter(rows, columns, nodes_[a.id].value, nodes_[a.id].gradient);
}

template <typename Real>
auto Tape<Real>::detached(Matrix a) -> Matrix {
  return constant(row_count(a), column_count(a), value(a).data());
}

template <typename Real>
void Tape<Real>::backward() {
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node)
    if (node->kind != Kind::leaf && node->gradient != nullptr) back(*node);
}

template <typename Real>
void Tape<Real>::back(const Node& node) {
  spend(size(node));
  switch (node.kind) {
    case Kind::leaf:
      return;
    case Kind::product:
      return back_product(node);
    case Kind::product_transposed:
      return back_product_transposed(node);
    case Kind::layer_norm:
      return back_layer_norm(node);
    case Kind::scaled:
    case Kind::elementwise:
    case Kind::relu:
    case Kind::tanh:
    case Kind::sigmoid:
      return back_pointwise(node);
    case Kind::sum:
    case Kind::scaled_rows:
    case Kind::row_dots:
    case Kind::softmax:
    case Kind::messages:
    case Kind::row_maxima:
    case Kind::beside:
    case Kind::above:
    case Kind::columns:
    case Kind::row_range:
      return back_rows(node);
  }
}

template <typename Real>
void Tape<Real>::back_product(const Node& node) {
  const Node &a = nodes_[node.a], &b = nodes_[node.b];
  spend(2 * size(node) * a.columns);
  if (a.gradient != nullptr)
    dense::multiply_transposed_add(node.gradient, b.value, a.gradient, node.rows, a.columns, node.columns, scratch_);
  if (b.gradient != nullptr) dense::outer_add(a.value, node.gradient, b.gradient, node.rows, a.columns, node.columns);
}

template <typename Real>
void Tape<Real>::back_product_transposed(const Node& node) {
  const Node &a = nodes_[node.a], &b = nodes_[node.b];
  spend(2 * size(node) * a.columns);
  if (a.gradient != nullptr)
    dense::multiply_add(node.gradient, b.value, a.gradient, node.rows, node.columns, a.columns);
  if (b.gradient != nullptr) dense::outer_add(node.gradient, a.value, b.gradient, node.rows, node.columns, a.columns);
}

// With x̂ the normalised row, r the inverse of the deviation and g the derivative by x̂:
//   dx = r · (g − mean(g) − x̂ · mean(g ⊙ x̂)).
template <typename Real>
void Tape<Real>::back_layer_norm(const Node& node) {
  const Node &x = nodes_[node.a], &gain = nodes_[node.b], &bias = nodes_[node.c];
  const std::size_t columns = node.columns;
  const Real* inverse = node.extra + node.rows * columns;
  for (std::size_t row = 0; row < node.rows; ++row) {
    const Real* out = node.gradient + row * columns;
    const Real* normalised = node.extra + row * columns;
    Real mean = 0, along = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      if (gain.gradient != nullptr) gain.gradient[i] += out[i] * normalised[i];
      if (bias.gradient != nullptr) bias.gradient[i] += out[i];
      mean += out[i] * gain.value[i];
      along += out[i] * gain.value[i] * normalised[i];
    }
    if (x.gradient == nullptr) continue;
    mean /= static_cast<Real>(columns);
    along /= static_cast<Real>(columns);
    for (std::size_t i = 0; i < columns; ++i)
      x.gradient[row * columns + i] += inverse[row] * (out[i] * gain.value[i] - mean - normalised[i] * along);
  }
}

template <typename Real>
void Tape<Real>::back_pointwise(const Node& node) {
  const Node& a = nodes_[node.a];
  const std::size_t count = size(node);
  if (node.kind == Kind::elementwise) {
    const Node& b = nodes_[node.b];
    for (std::size_t i = 0; i < count; ++i) {
      if (a.gradient != nullptr) a.gradient[i] += node.gradient[i] * b.value[i];
      if (b.gradient != nullptr) b.gradient[i] += node.gradient[i] * a.value[i];
    }
    return;
  }
  const auto add = [&](auto slope) {
    for (std::size_t i = 0; i < count; ++i) a.gradient[i] += node.gradient[i] * slope(node.value[i]);
  };
  if (node.kind == Kind::scaled) add([&](Real) { return node.number; });
  if (node.kind == Kind::relu) add([](Real y) { return y > 0 ? Real{1} : Real{0}; });
  if (node.kind == Kind::tanh) add([](Real y) { return 1 - y * y; });
  if (node.kind == Kind::sigmoid) add([](Real y) { return y * (1 - y); });
}

template <typename Real>
void Tape<Real>::back_rows(const Node& node) {
  const Node& a = nodes_[node.a];
  const std::size_t columns = node.columns;
  const Real* out = node.gradient;
  const auto add = [](Real* to, const Real* from, std::size_t count, Real factor = 1) {
    if (to == nullptr) return;
    if (count % kBlock == 0) return dense::add_scaled(factor, from, to, count);
    for (std::size_t i = 0; i < count; ++i) to[i] += factor * from[i];
  };
  const auto at = [](Real* base, std::size_t offset) { return base == nullptr ? nullptr : base + offset; };
  if (node.kind == Kind::sum) {
    const Node& b = nodes_[node.b];
    add(a.gradient, out, size(node));
    for (std::size_t begin = 0; begin < size(node); begin += size(b)) add(b.gradient, out + begin, size(b));
  } else if (node.kind == Kind::scaled_rows) {
    const Node& b = nodes_[node.b];
    for (std::size_t row = 0; row < node.rows; ++row) {
      add(at(a.gradient, row * columns), out + row * columns, columns, b.value[row]);
      for (std::size_t i = 0; b.gradient != nullptr && i < columns; ++i)
        b.gradient[row] += out[row * columns + i] * a.value[row * columns + i];
    }
  } else if (node.kind == Kind::row_dots) {
    const Node& b = nodes_[node.b];
    const std::size_t stride = b.rows == 1 ? 0 : b.columns;
    for (std::size_t row = 0; row < node.rows; ++row) {
      add(at(a.gradient, row * a.columns), b.value + row * stride, a.columns, out[row]);
      add(at(b.gradient, row * stride), a.value + row * a.columns, a.columns, out[row]);
    }
  } else if (node.kind == Kind::softmax) {
    for (std::size_t row = 0; row < node.rows; ++row) {
      const Real *y = node.value + row * columns, *g = out + row * columns;
      Real mean = 0;
      for (std::size_t i = 0; i < columns; ++i) mean += y[i] * g[i];
      for (std::size_t i = 0; i < columns; ++i) a.gradient[row * columns + i] += y[i] * (g[i] - mean);
    }
  } else if (node.kind == Kind::messages) {
    const std::size_t edges = node.from.empty() ? node.to.size() : node.from.size();
    for (std::size_t e = 0; e < edges; ++e)
      add(a.gradient + (node.from.empty() ? e : node.from[e]) * columns,
          out + (node.to.empty() ? e : node.to[e]) * columns, columns, node.weight.empty() ? Real{1} : node.weight[e]);
  } else if (node.kind == Kind::row_maxima) {
    for (std::size_t place = 0; place < size(node); ++place)
      if (node.chosen[place] != kNone) a.gradient[node.chosen[place] * columns + place % columns] += out[place];
  } else if (node.kind == Kind::beside) {
    const Node& b = nodes_[node.b];
    for (std::size_t row = 0; row < node.rows; ++row) {
      add(at(a.gradient, row * a.columns), out + row * columns, a.columns);
      add(at(b.gradient, row * b.columns), out + row * columns + a.columns, b.columns);
    }
  } else if (node.kind == Kind::above) {
    add(a.gradient, out, size(a));
    add(nodes_[node.b].gradient, out + size(a), size(nodes_[node.b]));
  } else if (node.kind == Kind::columns) {
    for (std::size_t row = 0; row < node.rows; ++row)
      add(a.gradient + row * a.columns + node.first, out + row * columns, columns);
  } else if (node.kind == Kind::row_range) {
    add(a.gradient + node.first * columns, out, size(node));
  }
}

template class Tape<float>;
template class Tape<double>;

}  // namespace doppler
