#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "doppler/budget.h"

namespace doppler {

// Reverse-mode differentiation for networks of a few dozen small matrices: a forward pass writes its operations on the
// tape, backward() runs them in reverse. It is what the policies use whose passes are too long to write their
// derivatives by hand; nn/dense.h, which it multiplies with, starts in microseconds where libtorch takes half a second.
//
//   Tape<float> tape;
//   const auto x = tape.constant(n, features, input);
//   const auto h = tape.relu(tape.affine(x, tape.parameter(features, 64, w, dw), tape.parameter(1, 64, b, db)));
//   tape.gradient(h)[i] += …;                       // the derivative of the loss by an element, from outside
//   tape.backward();                                // dw and db have been added to
//   tape.clear();                                   // the next forward pass uses the same memory
//
// Matrices are row-major. Arrays from outside (values of constants and parameters, indices) must stay until clear().
template <typename Real>
class Tape {
 public:
  // A matrix on the tape: its number.
  struct Matrix {
    std::uint32_t id;
  };

  // Without gradients a pass takes half the memory, and cannot go backward.
  explicit Tape(bool with_gradients = true) : with_gradients_(with_gradients) {}

  void clear();
  // Says what looks at the clock in every operation and in backward(), which then throw OutOfTime: the tape is to be
  // cleared after that. Nothing looks at first.
  void set_watch(Watch* watch) { watch_ = watch; }

  Matrix constant(std::size_t rows, std::size_t columns, const Real* values);
  Matrix parameter(std::size_t rows, std::size_t columns, const Real* values, Real* gradient);

  Matrix product(Matrix a, Matrix b);             // a · b
  Matrix product_transposed(Matrix a, Matrix b);  // a · bᵀ
  Matrix affine(Matrix x, Matrix weights, Matrix bias);
  Matrix sum(Matrix a, Matrix b);  // b may have one row, which is then added to each
  Matrix scaled(Matrix a, Real factor);
  Matrix elementwise(Matrix a, Matrix b);   // a ⊙ b
  Matrix scaled_rows(Matrix a, Matrix by);  // row i times by[i]; `by` has one column
  Matrix row_dots(Matrix a, Matrix b);      // a_i · b_i, one column; b may have one row
  Matrix relu(Matrix a);
  Matrix tanh(Matrix a);
  Matrix sigmoid(Matrix a);
  Matrix softmax(Matrix a);  // of each row
  // Each row to mean 0 and variance 1, then ⊙ gain + bias, which have one row.
  Matrix layer_norm(Matrix x, Matrix gain, Matrix bias);
  Matrix rows(Matrix a, std::span<const std::uint32_t> which);  // row i of the result is row which[i] of a
  // Row r of the result is Σ weight[i] · a_i over the rows i with to[i] = r; no weights: all are 1.
  Matrix row_sums(Matrix a, std::span<const std::uint32_t> to, std::size_t count, std::span<const Real> weight = {});
  Matrix row_maxima(Matrix a, std::span<const std::uint32_t> to, std::size_t count);  // 0 where there is no row
  // Σ weight[e] · a[from[e]] over the edges e with to[e] = r: one step of message passing.
  Matrix messages(Matrix a, std::span<const std::uint32_t> from, std::span<const std::uint32_t> to, std::size_t count,
                  std::span<const Real> weight = {});
  // The same with the largest of each column instead of the sum, and no weights.
  Matrix message_maxima(Matrix a, std::span<const std::uint32_t> from, std::span<const std::uint32_t> to,
                        std::size_t count);
  Matrix beside(Matrix a, Matrix b);                                 // the columns of a, then those of b
  Matrix above(Matrix a, Matrix b);                                  // the rows of a, then those of b
  Matrix joined(std::vector<Matrix> parts);                          // the rows of each, in order; at least one
  Matrix columns(Matrix a, std::size_t first, std::size_t count);    // some of them
  Matrix row_range(Matrix a, std::size_t first, std::size_t count);  // some of them
  Matrix reshaped(Matrix a, std::size_t rows, std::size_t columns);  // the same elements in other rows
  Matrix detached(Matrix a);                                         // the same values, of no descent

  std::size_t row_count(Matrix a) const { return nodes_[a.id].rows; }
  std::size_t column_count(Matrix a) const { return nodes_[a.id].columns; }
  std::span<const Real> value(Matrix a) const { return {nodes_[a.id].value, size(nodes_[a.id])}; }
  // Where whoever computes the loss adds its derivatives. Empty if the pass has no gradients, or the matrix none.
  std::span<Real> gradient(Matrix a) {
    const Node& node = nodes_[a.id];
    return node.gradient == nullptr ? std::span<Real>() : std::span<Real>(node.gradient, size(node));
  }

  void backward();

 private:
  enum class Kind : std::uint8_t {
    leaf,
    product,
    product_transposed,
    sum,
    scaled,
    elementwise,
    scaled_rows,
    row_dots,
    relu,
    tanh,
    sigmoid,
    softmax,
    layer_norm,
    messages,
    row_maxima,
    beside,
    above,
    columns,
    row_range,
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    Kind kind = Kind::leaf;
    std::uint32_t a = kNone, b = kNone, c = kNone;
    std::size_t rows = 0, columns = 0;
    const Real* value = nullptr;
    Real* gradient = nullptr;  // null: nothing depends on a parameter
    std::span<const std::uint32_t> from = {}, to = {};
    std::span<const Real> weight = {};
    Real number = 0;                  // scaled: the factor
    std::size_t first = 0;            // columns, row_range: where they begin
    Real* extra = nullptr;            // layer_norm: 1 / deviation of each row, after the normalised rows
    std::uint32_t* chosen = nullptr;  // row_maxima: the row of a that each element came from
  };
  static std::size_t size(const Node& node) { return node.rows * node.columns; }

  // Memory that stays where it is and is used again after clear().
  template <typename T>
  class Arena {
   public:
    T* take(std::size_t count);
    void clear() { chunk_ = used_ = 0; }

   private:
    struct Chunk {
      std::unique_ptr<T[]> data;
      std::size_t size;
    };
    std::vector<Chunk> chunks_;
    std::size_t chunk_ = 0, used_ = 0;
  };

  void spend(std::size_t multiplications) {
    constexpr std::size_t kPerStep = 32;
    if (watch_ != nullptr) watch_->step(1 + multiplications / kPerStep);
  }
  Real* push(Node node, std::size_t rows, std::size_t columns);
  Matrix last() const { return {static_cast<std::uint32_t>(nodes_.size() - 1)}; }
  bool depends(std::uint32_t id) const { return id != kNone && nodes_[id].gradient != nullptr; }
  template <typename Function>
  Matrix map(Kind kind, Matrix a, Function function);
  void back(const Node& node);
  void back_product(const Node& node);
  void back_product_transposed(const Node& node);
  void back_layer_norm(const Node& node);
  void back_pointwise(const Node& node);
  void back_rows(const Node& node);

  bool with_gradients_;
  Watch* watch_ = nullptr;
  std::vector<Node> nodes_;
  Arena<Real> reals_;
  Arena<std::uint32_t> indices_;
  std::vector<Real> scratch_;
};

}  // namespace doppler
