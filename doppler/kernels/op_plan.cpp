#include "doppler/kernels/op_plan.h"

#include <algorithm>

#include "doppler/kernels/element.h"

namespace doppler {

using program::Index;
using program::Node;
using program::Rect;

namespace {

constexpr std::size_t kScratchLine = AlignedBytes::kAlignment;

std::string quoted(const Node& node) { return fmt::format("'{}'", node.name); }

// Returns the same rectangle counted in real numbers where its elements are complex.
Rect in_reals(Rect rect, program::DType dtype) {
  if (is_complex(dtype)) {
    rect.begin.back() *= 2;
    rect.end.back() *= 2;
  }
  return rect;
}

class Planner {
 public:
  Planner(const PlanContext& context, OpId op)
      : program_(context.program),
        lowered_(context.lowered),
        op_(op),
        kernel_(lowered_.kernels[op]),
        node_(program_.node(kernel_.expr)),
        covers_(output_region(node_, kernel_.block)),
        element_bytes_(size_of(node_.dtype)),
        inputs_(context.inputs),
        variables_(context.variables),
        backend_(context.backend) {
    plan_.block_bytes = static_cast<std::size_t>(covers_.volume()) * element_bytes_;
    with_element(quoted(node_), node_.dtype, [](auto) {});
    const auto tensors = lowered_.graph.inputs(op);
    for (std::uint32_t i = 0; i < tensors.size(); ++i) slots_.emplace(tensors[i], i);
  }

  OpPlan run() {
    if (const program::Formation* formation = node_.as<program::Formation>()) {
      plan_formation(*formation);
      return std::move(plan_);
    }
    if (const program::Einsum* einsum = node_.as<program::Einsum>())
      plan_einsum(*einsum);
    else if (const program::Fill* fill = node_.as<program::Fill>())
      plan_.kernel = backend_.make_fill(*fill, node_.dtype, kernel_.block);
    else
      plan_movement();
    plan_outputs();
    if (plan_.kernel) plan_.work = reserve(plan_.kernel->work_bytes());
    return std::move(plan_);
  }

 private:
  std::size_t reserve(std::size_t bytes) {
    const std::size_t at = plan_.scratch_bytes;
    plan_.scratch_bytes += (bytes + kScratchLine - 1) / kScratchLine * kScratchLine;
    return at;
  }

  DataSource tensor(TensorId id) const {
    DataSource source;
    source.input = slots_.at(id);
    return source;
  }

  void plan_formation(const program::Formation& formation) {
    for (const program::Piece& piece : kernel_.operands[0].pieces) {
      plan_.partials.push_back(slots_.at(piece.tensor));
      DOPPLER_CHECK(lowered_.tensor_regions[piece.tensor] == covers_, "'{}': a partial result of another block",
                    node_.name);
    }
    for (const TensorId output : lowered_.graph.outputs(op_)) {
      const Rect& region = lowered_.tensor_regions[output];
      plan_.folds.emplace_back(formation.aggregate, node_.dtype, covers_, region, region);
    }
    plan_.fold_to_result.emplace(formation.aggregate, node_.dtype, covers_, Rect::whole(node_.shape), covers_);
  }

  void plan_einsum(const program::Einsum& einsum) {
    EinsumBlock block;
    block.sizes = kernel_.block.shape();
    block.rank = node_.shape.size();
    block.labels = einsum.operands;
    block.result = node_.dtype;
    for (std::size_t k = 0; k < kernel_.operands.size(); ++k) {
      const std::vector<Index> steps = plan_operand(kernel_.operands[k]);
      block.dtypes.push_back(program_.node(kernel_.operands[k].expr).dtype);
      block.steps.emplace_back(block.sizes.size(), 0);
      for (std::size_t i = 0; i < steps.size(); ++i) block.steps.back()[einsum.operands[k][i]] = steps[i];
    }
    plan_.kernel = backend_.make_einsum(einsum, block, variables_);
  }

  // Makes the operand readable through one pointer and returns its steps. A tensor is read in place even if the block
  // needs only a part of it; only an operand in several pieces is put together in scratch memory.
  std::vector<Index> plan_operand(const program::Operand& operand) {
    const program::DType dtype = program_.node(operand.expr).dtype;
    with_element(quoted(program_.node(operand.expr)), dtype, [](auto) {});
    const std::size_t bytes = size_of(dtype);
    DataSource source;
    Rect lies_in = operand.region;
    if (operand.resident) {
      source.resident = inputs_.region(operand.expr, operand.region);
    } else if (operand.pieces.size() == 1) {
      source = tensor(operand.pieces[0].tensor);
      lies_in = lowered_.tensor_regions[operand.pieces[0].tensor];
      const Rect local = shifted(operand.region, lies_in.begin, -1);
      source.offset = static_cast<std::size_t>(program::offset_in(lies_in.shape(), local.begin)) * bytes;
    } else {
      source.scratch = reserve(static_cast<std::size_t>(operand.region.volume()) * bytes);
      for (const program::Piece& piece : operand.pieces)
        plan_.gathers.push_back(
            {tensor(piece.tensor),
             StridedCopy::between(lowered_.tensor_regions[piece.tensor], operand.region, piece.region, bytes),
             source.scratch});
    }
    plan_.operands.push_back(source);
    return row_major_steps(lies_in.shape());
  }

  // Select, concat, squeeze, complexer and the blocks of updated inputs: elements change their place only.
  void plan_movement() {
    if (node_.as<program::Input>() != nullptr) {
      DataSource source;
      source.resident = inputs_.region(kernel_.expr, covers_);
      plan_.gathers.push_back({source, StridedCopy::between(covers_, covers_, covers_, element_bytes_)});
      return;
    }
    for (std::size_t k = 0; k < kernel_.operands.size(); ++k) {
      const program::Operand& operand = kernel_.operands[k];
      if (operand.region.volume() == 0) continue;  // a concat that needs nothing of this input
      if (operand.resident) {
        DataSource source;
        source.resident = inputs_.region(operand.expr, operand.region);
        add_movement(source, operand, operand.region, operand.region, k);
      }
      for (const program::Piece& piece : operand.pieces)
        add_movement(tensor(piece.tensor), operand, lowered_.tensor_regions[piece.tensor], piece.region, k);
    }
  }

  // `region` of operand k, which lies in memory as `lies_in`, goes to its place in the block.
  void add_movement(const DataSource& source, const program::Operand& operand, Rect lies_in, Rect region,
                    std::size_t k) {
    std::size_t bytes = element_bytes_;
    Rect target = covers_, in_block = region;  // the block, and the region in its coordinates
    if (const program::Select* select = node_.as<program::Select>()) {
      in_block = shifted(region, select->region.begin, -1);
    } else if (const program::Concat* concat = node_.as<program::Concat>()) {
      in_block.begin[concat->axis] += concat->begins[k];
      in_block.end[concat->axis] += concat->begins[k];
    } else if (node_.as<program::Squeeze>() != nullptr) {
      target = operand.region;  // dimensions of one element do not change where the others lie
    } else {                    // complexer: count in reals, whatever side is complex
      const program::DType read = program_.node(operand.expr).dtype;
      bytes = size_of(is_complex(read) ? real_of(read) : read);
      lies_in = in_reals(std::move(lies_in), read);
      target = in_reals(std::move(target), node_.dtype);
      region = in_block = intersect(in_reals(std::move(region), read), target);
      if (region.volume() == 0) return;
    }
    plan_.gathers.push_back({source, relocated(lies_in, region, target, in_block, bytes)});
  }

  // `region` in the coordinates of `from` becomes `in_block`, of the same shape, in those of `to`.
  static StridedCopy relocated(const Rect& from, const Rect& region, const Rect& to, const Rect& in_block,
                               std::size_t bytes) {
    program::Shape move(region.begin.size());
    for (std::size_t i = 0; i < move.size(); ++i) move[i] = in_block.begin[i] - region.begin[i];
    return StridedCopy::between(shifted(from, move), to, in_block, bytes);
  }

  void plan_outputs() {
    const auto outputs = lowered_.graph.outputs(op_);
    for (const TensorId output : outputs)
      if (!plan_.whole && lowered_.tensor_regions[output] == covers_) plan_.whole = output - outputs.first;
    if (!plan_.whole) plan_.block = reserve(plan_.block_bytes);
    for (const TensorId output : outputs) {
      const std::uint32_t number = output - outputs.first;
      if (plan_.whole == number) continue;
      const Rect& region = lowered_.tensor_regions[output];
      plan_.cuts.push_back({number, StridedCopy::between(covers_, region, region, element_bytes_)});
    }
    plan_.to_result = StridedCopy::between(covers_, Rect::whole(node_.shape), covers_, element_bytes_);
  }

  const program::Program& program_;
  const program::Lowered& lowered_;
  OpId op_;
  const program::Kernel& kernel_;
  const Node& node_;
  Rect covers_;  // what the op writes of its expression
  std::size_t element_bytes_;
  ResidentInputs& inputs_;
  const program::Variables& variables_;
  const Backend& backend_;
  std::map<TensorId, std::uint32_t> slots_;  // number of a tensor among the op's inputs
  OpPlan plan_;
};

}  // namespace

std::span<const std::byte> ResidentInputs::region(program::ExprId expr, const Rect& region) {
  const auto found = whole_.find(expr);
  DOPPLER_CHECK(found != whole_.end(), "input {} has no value", expr);
  const Array& array = found->second;
  const Rect all = Rect::whole(array.shape);
  if (region == all) return {array.bytes.data(), array.bytes.size()};
  AlignedBytes& part = parts_[{expr, {region.begin, region.end}}];
  if (part.size() == 0) {
    const std::size_t bytes = size_of(array.dtype);
    part = AlignedBytes(static_cast<std::size_t>(region.volume()) * bytes);
    StridedCopy::between(all, region, region, bytes).run(array.bytes.data(), part.data());
  }
  return {part.data(), part.size()};
}

OpPlan plan_op(const PlanContext& context, OpId op) { return Planner(context, op).run(); }

}  // namespace doppler
