#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "doppler/program/expr/scalar.h"
#include "doppler/program/expr/shape.h"

namespace doppler::program {

using ExprId = std::uint32_t;

enum class Aggregate : std::uint8_t { sum, product, max, min };
std::string_view to_string(Aggregate aggregate);
// The fold, and the value that starts it.
std::complex<double> fold(Aggregate aggregate, std::complex<double> a, std::complex<double> b);
std::complex<double> neutral(Aggregate aggregate);

// What a node computes. In every kind the *join space* is the space that a Box cuts: all labels for an
// einsum, the output for the rest.
struct Input {
  bool weight = false;  // learned; else data
};
// Z[o] = aggregate over the reduced labels of join(X0[…], X1[…], …). Labels are 0 … J-1; the output is always
// labels 0 … R-1 in order, where R is the rank of the node's shape, and the rest are reduced.
struct Einsum {
  std::vector<std::string> labels;                   // names
  Shape sizes;                                       // one per label
  std::vector<std::vector<std::uint32_t>> operands;  // label ids per input
  Scalar join = 0.0;
  std::optional<Aggregate> aggregate;  // absent if nothing is reduced

  // A product of two inputs summed up, every output label in an input: a matrix product up to relabelling.
  bool is_contraction() const;
};
// The identity that says "finish the aggregation here, once". It follows every aggregating einsum, and
// nothing else reads one.
struct Formation {
  Aggregate aggregate = Aggregate::sum;
};
struct Select {  // a rectangle of the input
  Rect region;
};
struct Concat {
  std::size_t axis = 0;
  std::vector<Index> begins;  // where each input starts along the axis
};
// `value` where the last index is at most the one before it (or everywhere for rank < 2), `above` elsewhere:
// a causal mask costs no input.
struct Fill {
  double value = 0, above = 0;
};
// An op of an imported model that is no einsum, known by what its blocks read: a convolution, a softmax, a reshape. It
// has costs and regions but no values, so it is lowered, not evaluated.
struct Stencil {
  // What a block reads along one dimension of an operand: what belongs to the block's range [b, e) along `axis` of the
  // output, [b·step + offset, (e-1)·step + offset + extent), divided by `divisor` and rounded outwards; without an
  // axis always [offset, offset + extent), and all of it if `extent` is 0.
  struct Span {
    std::optional<std::size_t> axis = std::nullopt;
    Index step = 1, offset = 0, extent = 0, divisor = 1;
    static Span along(std::size_t axis) { return {.axis = axis, .extent = 1}; }
  };
  std::string kind;
  std::vector<std::vector<Span>> operands;   // by input and dimension
  std::vector<Index> most_pieces;            // per dimension of the output; 1: never cut
  Flops flops = 0;                           // of the whole; a block has its share
  std::optional<Bytes> read = std::nullopt;  // of the whole, where that is less than the regions (a gather)
  // Only another shape for the same elements: no op, its readers read the operand.
  bool view = false;
};
struct Squeeze {};    // adds or removes dimensions of size 1
struct Complexer {};  // reads pairs of the last dimension as complex numbers, or writes them

using Computation = std::variant<Input, Einsum, Formation, Select, Concat, Fill, Squeeze, Complexer, Stencil>;

struct Node {
  std::string name;  // unique
  DType dtype = DType::f32;
  Shape shape;
  std::vector<ExprId> inputs;
  Computation computation;

  template <typename Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&computation);
  }
  const Shape& join_shape() const { return as<Einsum>() != nullptr ? as<Einsum>()->sizes : shape; }
  // How often each label may be cut: once per element, unless the computation says less.
  Shape most_pieces() const;
  bool is_view() const { return as<Stencil>() != nullptr && as<Stencil>()->view; }
  Bytes bytes() const { return static_cast<Bytes>(product(shape)) * size_of(dtype); }
};

// "matmul", "elementwise", "reduce", "permute", "broadcast", or the name of the computation.
std::string_view kernel_kind(const Node& node);
// Arithmetic on one block: join flops per point, and one fold for each point beyond the first of each output
// element.
Flops block_flops(const Node& node, const Rect& block);
// What input `operand` contributes to block `block` of the join space, as a rectangle of that input; may be
// empty.
Rect operand_region(const Node& node, std::size_t operand, const Shape& input_shape, const Rect& block);
// The output rectangle of a block of the join space.
Rect output_region(const Node& node, const Rect& block);

class Program;

// A handle: cheap to copy, valid as long as its program.
struct Expr {
  Program* program = nullptr;
  ExprId id = 0;

  const Shape& shape() const;
  DType dtype() const;
  std::size_t rank() const { return shape().size(); }
};

struct EinsumOptions {
  std::optional<Scalar> join = std::nullopt;          // default: the product of all inputs
  std::optional<Aggregate> aggregate = std::nullopt;  // default: sum, if labels are reduced
  std::map<std::string, Index> sizes = {};            // of labels that no input has
  std::string name = {};
};

// An expression graph. Expressions are added after their inputs, so ids are a topological order; shapes and
// dtypes are checked as they are added, and the InputError names the expression, the label and both sizes.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;  // handles point to it
  Program& operator=(const Program&) = delete;

  Expr input(std::string name, Shape shape, DType dtype = DType::f32);
  Expr weight(std::string name, Shape shape, DType dtype = DType::f32);
  // "bsd,df->bsf": one letter per label; see EinsumOptions for everything beyond a sum of products.
  Expr einsum(std::string_view labels, const std::vector<Expr>& inputs, EinsumOptions options = {});
  using LabelLists = std::vector<std::vector<std::string>>;
  Expr einsum(const LabelLists& inputs_labels, const std::vector<std::string>& output, const std::vector<Expr>& inputs,
              EinsumOptions options = {});
  // f on the elements of tensors of one shape.
  Expr map(const std::vector<Expr>& inputs, Scalar f, std::string name = {});
  Expr select(Expr input, Rect region, std::string name = {});
  Expr concat(const std::vector<Expr>& inputs, std::size_t axis, std::string name = {});
  Expr fill(Shape shape, DType dtype, Fill fill, std::string name = {});
  Expr reshape_ones(Expr input, Shape shape, std::string name = {});  // the same but for dimensions of size 1
  Expr to_complex(Expr input, std::string name = {});
  Expr to_real(Expr input, std::string name = {});
  Expr stencil(const std::vector<Expr>& inputs, Shape shape, DType dtype, Stencil stencil, std::string name = {});
  Expr convert(Expr input, DType dtype, std::string name = {});  // the input itself if it has that dtype

  // For readers of stored programs, whose names are unique already.
  void rename(Expr expr, std::string name) { nodes_[expr.id].name = std::move(name); }

  void mark_output(Expr expr);
  void set_outputs(const std::vector<Expr>& outputs);
  // `next` is the value of input `old` after the step; both live on the same device, cut the same way.
  void mark_update(Expr old, Expr next);

  ExprId size() const { return static_cast<ExprId>(nodes_.size()); }
  const Node& node(ExprId id) const { return nodes_[id]; }
  Expr expr(ExprId id) { return {this, id}; }
  const std::vector<ExprId>& outputs() const { return outputs_; }
  struct Update {
    ExprId old, next;
  };
  const std::vector<Update>& updates() const { return updates_; }
  std::vector<ExprId> weights() const;
  // Ids of the inputs that updates replace, as flags: those become ops when lowered, the others are resident.
  std::vector<char> updated_inputs() const;

  // While it lives, names of new expressions start with `prefix.`
  class Scope {
   public:
    Scope(Program& program, std::string_view prefix);
    ~Scope() { program_.prefix_.resize(length_); }
    Scope(const Scope&) = delete;

   private:
    Program& program_;
    std::size_t length_;
  };

 private:
  Expr add(std::string name, std::string_view fallback, Node node);
  Expr add_formed(std::string name, Node einsum);  // with its formation, if it aggregates
  std::string describe(ExprId id) const;           // 'x'
  Einsum number_labels(const std::string& what, const LabelLists& inputs_labels, const std::vector<std::string>& output,
                       const std::vector<Expr>& inputs) const;
  void check_sizes(const std::string& what, Einsum& einsum, const std::vector<Expr>& inputs,
                   const std::map<std::string, Index>& given) const;

  std::vector<Node> nodes_;
  std::vector<ExprId> outputs_;
  std::vector<Update> updates_;
  std::map<std::string, unsigned, std::less<>> names_;  // how often each was asked for
  std::string prefix_;
};

// Tensors of one shape, element by element.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator*(double factor, Expr a);

}  // namespace doppler::program
