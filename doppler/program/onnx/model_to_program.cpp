#include "doppler/program/onnx/model_to_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/program/onnx/cut_rules.h"
#include "doppler/program/onnx/equation.h"

namespace doppler::program {
namespace {

using Labels = std::vector<std::string>;

DType dtype_of(std::int32_t element) {
  using onnx::TensorProto;
  switch (element) {
    case TensorProto::FLOAT:
      return DType::f32;
    case TensorProto::FLOAT16:
      return DType::f16;
    case TensorProto::BFLOAT16:
      return DType::bf16;
    case TensorProto::DOUBLE:
      return DType::f64;
    case TensorProto::COMPLEX64:
      return DType::c64;
    case TensorProto::COMPLEX128:
      return DType::c128;
    default:
      break;
  }
  constexpr std::uint32_t kByte = 8;
  const std::uint32_t bytes = (bits_of(element) + kByte - 1) / kByte;
  return bytes >= 8 ? DType::i64 : bytes >= 4 ? DType::i32 : bytes == 2 ? DType::i16 : DType::i8;
}

bool computes_in_einsums(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

class ModelToProgram {
 public:
  ModelToProgram(const Reading& reading, Program& program, bool runnable)
      : reading_(reading),
        p_(program),
        runnable_(runnable),
        exprs_(reading.values.size()),
        read_(reading.values.size(), 0) {
    for (const ModelOp& op : reading.ops)
      for (const ValueId id : op.inputs)
        if (id != kNone) read_[id] = 1;
    if (!runnable) return;
    for (const ValueId id : reading.outputs)
      if (id != kNone) read_[id] = 1;
  }

  std::vector<ExprOrigin> run() {
    for (const ModelOp& op : reading_.ops) {
      if (op.view)
        add_view(op);
      else if (!op.outputs.empty() && (runnable_ || !add_product(op)))
        add_stencils(op);
    }
    origins_.resize(p_.size());
    return std::move(origins_);
  }

 private:
  Shape shape(ValueId id) const {
    Shape dims = dims_of(reading_.values[id].type).value_or(Shape());
    for (Index& size : dims) size = std::max<Index>(size, 1);
    return dims;
  }

  // Static tensors and data that is fed in are inputs of the program.
  Expr expr(ValueId id) {
    std::optional<Expr>& known = exprs_[id];
    if (known) return *known;
    const ModelValue& value = reading_.values[id];
    DType dtype = dtype_of(element_of(value.type));
    // Weights may be held narrower than they are used; what counts is what is held.
    const Index count = std::max<Index>(1, elements(value.type));
    if (value.is_static && value.stored < size_of(dtype) * static_cast<Bytes>(count))
      dtype = value.stored <= static_cast<Bytes>(count) ? DType::i8 : DType::i16;
    known = value.is_static ? p_.weight(value.name, shape(id), dtype) : p_.input(value.name, shape(id), dtype);
    return *known;
  }

  Expr add(const ModelOp& op, StencilRule rule, ValueId output, Stencil stencil, std::string name) {
    std::vector<Expr> inputs;
    for (StencilRule::Operand& operand : rule.operands) {
      inputs.push_back(expr(operand.value));
      stencil.operands.push_back(std::move(operand.spans));
    }
    stencil.kind = kind_of(*op.rules, *op.node);
    stencil.most_pieces = std::move(rule.most_pieces);
    for (Index& pieces : stencil.most_pieces) pieces = std::max<Index>(pieces, 1);
    stencil.read = rule.read;
    const Expr result = p_.stencil(inputs, shape(output), dtype_of(element_of(reading_.values[output].type)),
                                   std::move(stencil), std::move(name));
    exprs_[output] = result;
    return result;
  }

  void note_origin(Expr expr, const ModelOp& op, std::uint32_t output) {
    origins_.resize(p_.size());
    origins_[expr.id] = {static_cast<std::uint32_t>(&op - reading_.ops.data()), output};
  }

  // Returns nothing for what stays whole.
  std::optional<StencilRule> rule_of(const ModelOp& op, std::size_t output) const {
    if (!runnable_) return stencil_rule(reading_, op, output);
    for (const auto* ids : {&op.inputs, &op.outputs})
      for (const ValueId id : *ids)
        if (id != kNone && (!is_complete(reading_.values[id].type) || has_zero(id))) return std::nullopt;
    std::optional<StencilRule> rule = stencil_rule(reading_, op, output);
    if (rule) keep_to_kernels({reading_, op, output, shape(op.outputs[output])}, *rule);
    return rule;
  }

  void add_view(const ModelOp& op) {
    const ValueId from = op.inputs[0], to = op.outputs[0];
    add(op, reshape_rule(from, shape(from), shape(to)), to,
        {.kind = {}, .operands = {}, .most_pieces = {}, .view = true}, op.name);
  }

  void add_stencils(const ModelOp& op) {
    std::vector<ValueId> outputs;
    for (const ValueId id : op.outputs)
      if (id != kNone && (outputs.empty() || read_[id])) outputs.push_back(id);
    if (outputs.empty()) return;
    const bool each = op.rules->traits.each_output;
    std::optional<StencilRule> rule = outputs.size() == 1 || each ? rule_of(op, 0) : std::nullopt;
    if (!rule) return add_whole(op, outputs);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (op.outputs[i] == kNone || (i > 0 && !each)) continue;
      rule = rule_of(op, i);
      if (!rule) continue;
      const Expr made = add(op, std::move(*rule), op.outputs[i],
                            {.kind = {}, .operands = {}, .most_pieces = {}, .flops = op.cost.flops},
                            i == 0 ? op.name : fmt::format("{}.{}", op.name, i));
      note_origin(made, op, static_cast<std::uint32_t>(i));
    }
  }

  // Adds one op for everything. Several outputs are one row of bytes, and each of them is a view of its part.
  void add_whole(const ModelOp& op, const std::vector<ValueId>& outputs) {
    StencilRule rule;
    for (const ValueId id : op.inputs) {
      const auto same = [&](const StencilRule::Operand& other) { return other.value == id; };
      if (id == kNone || std::any_of(rule.operands.begin(), rule.operands.end(), same)) continue;
      rule.operands.push_back({id, std::vector<Stencil::Span>(shape(id).size())});
    }
    rule.read = op.cost.read;
    Stencil stencil{.kind = kind_of(*op.rules, *op.node), .operands = {}, .most_pieces = {}, .flops = op.cost.flops};
    if (outputs.size() == 1) {
      rule.most_pieces.assign(shape(outputs[0]).size(), 1);
      note_origin(add(op, std::move(rule), outputs[0], std::move(stencil), op.name), op, kNone);
      return;
    }
    Index total = 0;
    for (const ValueId id : outputs) total += bytes(id);
    std::vector<Expr> inputs;
    for (StencilRule::Operand& operand : rule.operands) {
      inputs.push_back(expr(operand.value));
      stencil.operands.push_back(std::move(operand.spans));
    }
    stencil.most_pieces = {1};
    stencil.read = rule.read;
    const Expr row = p_.stencil(inputs, {total}, DType::i8, std::move(stencil), op.name);
    note_origin(row, op, kNone);
    Index begin = 0;
    for (const ValueId id : outputs) {
      Stencil part{.kind = "view", .operands = {{{.offset = begin, .extent = bytes(id)}}}, .most_pieces = shape(id)};
      part.view = true;
      exprs_[id] = p_.stencil({row}, shape(id), dtype_of(element_of(reading_.values[id].type)), std::move(part),
                              reading_.values[id].name);
      begin += bytes(id);
    }
  }

  Index bytes(ValueId id) const { return std::max<Index>(1, static_cast<Index>(bytes_of(reading_.values[id].type))); }

  // Adds einsums for matrix products and equations on floats of one type; returns false for what stays a stencil.
  bool add_product(const ModelOp& op) {
    const AsEinsum form = op.rules->traits.einsum;
    if (form == AsEinsum::never) return false;
    if (form == AsEinsum::equation) return add_einsum(op);
    if (find_attribute(*op.node, "transBatchA") != nullptr) return false;
    if (op.inputs.size() < 2 || op.inputs[0] == kNone || op.inputs[1] == kNone) return false;
    const ValueId a = op.inputs[0], b = op.inputs[1], out = op.outputs[0];
    if (out == kNone || shape(a).empty() || shape(b).empty() || has_zero(a) || has_zero(b) || !same_floats({a, b, out}))
      return false;
    const bool transposes = int_attribute(*op.node, "transA", 0) != 0 || int_attribute(*op.node, "transB", 0) != 0;
    if (transposes && (shape(a).size() < 2 || shape(b).size() < 2)) return false;
    Labels in_a = labels(shape(a), "m", "k"), in_b = labels(shape(b), "k", "n"), in_out;
    if (int_attribute(*op.node, "transA", 0) != 0) std::swap(in_a[in_a.size() - 1], in_a[in_a.size() - 2]);
    if (int_attribute(*op.node, "transB", 0) != 0) std::swap(in_b[in_b.size() - 1], in_b[in_b.size() - 2]);
    if (!output_labels(a, b, in_a, in_b, in_out)) return false;
    const bool bias = form == AsEinsum::product_and_bias && op.inputs.size() > 2 && op.inputs[2] != kNone;
    const Expr product = p_.einsum({in_a, in_b}, in_out, {expr(a), expr(b)}, {.name = op.name});
    exprs_[out] = product;
    if (bias) add_bias(op, product);
    return true;
  }

  bool has_zero(ValueId id) const { return elements(reading_.values[id].type) == 0; }

  bool same_floats(const std::vector<ValueId>& ids) {
    const DType dtype = dtype_of(element_of(reading_.values[ids[0]].type));
    for (const ValueId id : ids)
      if (dtype_of(element_of(reading_.values[id].type)) != dtype ||
          (reading_.values[id].is_static && p_.node(expr(id).id).dtype != dtype))
        return false;
    return computes_in_einsums(dtype);
  }

  // Batch dimensions are numbered from the right, so that broadcasting pairs equal labels.
  static Labels labels(const Shape& shape, const char* row, const char* column) {
    if (shape.size() == 1) return {"k"};
    Labels result;
    for (std::size_t i = shape.size(); i > 2; --i) result.push_back(fmt::format("b{}", i - 2));
    result.emplace_back(row);
    result.emplace_back(column);
    return result;
  }

  // Returns false if a batch dimension is 1 on one side only: einsums do not broadcast.
  bool output_labels(ValueId a, ValueId b, const Labels& in_a, const Labels& in_b, Labels& out) const {
    const Shape left = shape(a), right = shape(b);
    const Labels& longer = in_a.size() >= in_b.size() ? in_a : in_b;
    for (const std::string& label : longer)
      if (label[0] == 'b') out.push_back(label);
    for (std::size_t i = 0; i < in_a.size(); ++i)
      for (std::size_t j = 0; j < in_b.size(); ++j)
        if (in_a[i] == in_b[j] && left[i] != right[j]) return false;
    if (in_a.size() > 1) out.emplace_back("m");
    if (in_b.size() > 1) out.emplace_back("n");
    return true;
  }

  void add_bias(const ModelOp& op, Expr product) {
    const ValueId bias = op.inputs[2];
    const Shape out = product.shape(), dims = shape(bias);
    Stencil stencil{.kind = "Add", .operands = {{}, {}}, .most_pieces = out};
    for (std::size_t i = 0; i < out.size(); ++i) stencil.operands[0].push_back(Stencil::Span::along(i));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::size_t axis = out.size() - std::min(out.size(), dims.size()) + i;
      const bool follows = axis < out.size() && dims[i] == out[axis] && dims[i] > 1;
      stencil.operands[1].push_back(follows ? Stencil::Span::along(axis) : Stencil::Span{});
    }
    stencil.flops = static_cast<Flops>(program::product(out));
    exprs_[op.outputs[0]] =
        p_.stencil({product, expr(bias)}, out, product.dtype(), std::move(stencil), op.name + ".bias");
  }

  bool add_einsum(const ModelOp& op) {
    if (op.outputs[0] == kNone || op.inputs.empty()) return false;
    std::vector<Shape> shapes;
    std::vector<ValueId> ids = op.inputs;
    ids.push_back(op.outputs[0]);
    for (const ValueId id : op.inputs) {
      if (id == kNone || has_zero(id)) return false;
      shapes.push_back(shape(id));
    }
    if (!same_floats(ids)) return false;
    const Equation equation = parse_equation(*op.node, shapes);
    std::vector<Expr> inputs;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      Labels sorted = equation.inputs[k];
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return false;  // a diagonal
      for (std::size_t i = 0; i < shapes[k].size(); ++i)
        if (equation.sizes.at(equation.inputs[k][i]) != shapes[k][i]) return false;  // broadcasts
      inputs.push_back(expr(op.inputs[k]));
    }
    exprs_[op.outputs[0]] = p_.einsum(equation.inputs, equation.output, inputs, {.name = op.name});
    return true;
  }

  const Reading& reading_;
  Program& p_;
  const bool runnable_;
  std::vector<ExprOrigin> origins_;         // by expression, as far as they are known
  std::vector<std::optional<Expr>> exprs_;  // by value
  std::vector<char> read_;                  // by value: an op reads it
};

}  // namespace

void model_to_program(const Reading& reading, Program& program) { ModelToProgram(reading, program, false).run(); }

std::vector<ExprOrigin> model_to_runnable_program(const Reading& reading, Program& program) {
  return ModelToProgram(reading, program, true).run();
}

}  // namespace doppler::program
