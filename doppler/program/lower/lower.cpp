#include "doppler/program/lower/lower.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

std::string_view published_kind(const Node& node) {
  if (node.as<Einsum>() != nullptr) return "einsummable";
  return node.as<Squeeze>() != nullptr ? "squeezer" : kernel_kind(node);
}

class Lowering {
 public:
  Lowering(const Program& program, const Plan& plan, const LowerOptions& options)
      : program_(program), plan_(plan), options_(options), builder_("lower"), first_op_(program.size(), 0) {}

  Lowered run() {
    builder_.set_title(options_.title);
    builder_.set_unitless(options_.costs == CostMode::published);
    const std::vector<char> needed = live(program_);
    updated_ = program_.updated_inputs();
    name_groups();
    for (ExprId id = 0; id < program_.size(); ++id) {
      const bool resident = program_.node(id).as<Input>() != nullptr && !updated_[id];
      if (needed[id] && !resident && !is_transparent(id)) lower_node(id);
    }
    std::vector<Rect> regions = add_tensors();
    return {std::move(builder_).build(), std::move(kernels_), std::move(regions)};
  }

 private:
  // A rectangle of an op's output and who reads it.
  struct Part {
    Rect region;
    std::vector<OpId> consumers;
  };

  // No op of its own: readers read its only input instead.
  bool is_transparent(ExprId id) const {
    const Node& node = program_.node(id);
    if (node.is_view()) return true;
    return options_.skip_single_formations && node.as<Formation>() != nullptr &&
           product(plan_[id]) == product(plan_[node.inputs[0]]);
  }

  void name_groups() {
    group_.resize(program_.size());
    for (const Program::Update& update : program_.updates())
      group_[update.old] = group_[update.next] = program_.node(update.old).name;
  }

  void lower_node(ExprId id) {
    const Node& node = program_.node(id);
    first_op_[id] = builder_.op_count();
    for_each_index(Rect::whole(plan_[id]), [&](const std::vector<Index>& block) {
      Kernel kernel{id, block_rect(node.join_shape(), plan_[id], block), {}};
      parts_.emplace_back();
      const auto op = static_cast<OpId>(parts_.size() - 1);
      if (node.as<Formation>() != nullptr)
        kernel.operands.push_back(partials(node, block, kernel.block, op));
      else
        for (std::size_t k = 0; k < node.inputs.size(); ++k)
          kernel.operands.push_back(operand(node, k, kernel.block, op));
      add_op(node, kernel, fmt::format("[{}]", fmt::join(block, ",")));
      kernels_.push_back(std::move(kernel));
    });
  }

  Operand operand(const Node& node, std::size_t k, const Rect& block, OpId op) {
    ExprId source = node.inputs[k];
    Rect region = operand_region(node, k, program_.node(source).shape, block);
    for (; is_transparent(source); source = program_.node(source).inputs[0])
      if (const Node& through = program_.node(source); through.is_view())
        region = operand_region(through, 0, program_.node(through.inputs[0]).shape, region);
    const Node& producer = program_.node(source);
    Operand result{source, false, std::move(region), {}};
    result.resident = producer.as<Input>() != nullptr && !updated_[source];
    if (result.resident || result.region.volume() == 0) return result;
    Box box = plan_[source];
    box.resize(producer.shape.size());  // of an einsum that needs no formation, the output labels
    Rect blocks = result.region;        // of the producer, that meet the region
    for (std::size_t i = 0; i < box.size(); ++i) {
      blocks.begin[i] = block_of(result.region.begin[i], producer.shape[i], box[i]);
      blocks.end[i] = block_of(result.region.end[i] - 1, producer.shape[i], box[i]) + 1;
    }
    for_each_index(blocks, [&](const std::vector<Index>& index) {
      const Rect held = block_rect(producer.shape, box, index);
      result.pieces.push_back(
          read(first_op_[source] + static_cast<OpId>(offset_in(box, index)), held, intersect(held, result.region), op));
    });
    return result;
  }

  // All partial results of an output block, one for each block of the reduced labels.
  Operand partials(const Node& node, const std::vector<Index>& block, const Rect& region, OpId op) {
    const ExprId source = node.inputs[0];
    Operand result{source, false, region, {}};
    Rect blocks = Rect::whole(plan_[source]);
    for (std::size_t i = 0; i < block.size(); ++i) blocks.begin[i] = block[i], blocks.end[i] = block[i] + 1;
    for_each_index(blocks, [&](const std::vector<Index>& index) {
      result.pieces.push_back(
          read(first_op_[source] + static_cast<OpId>(offset_in(plan_[source], index)), region, region, op));
    });
    return result;
  }

  // Registers that `consumer` reads `region` of the `held` output of `producer`. The tensor is its index
  // among the producer's parts until add_tensors() knows ids.
  Piece read(OpId producer, const Rect& held, const Rect& region, OpId consumer) {
    const Rect& carried = options_.costs == CostMode::published ? held : region;
    std::vector<Part>& parts = parts_[producer];
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.region == carried; });
    if (part == parts.end()) part = parts.insert(parts.end(), {carried, {}});
    // A block that reads a tensor twice (x · x) is one consumer.
    if (part->consumers.empty() || part->consumers.back() != consumer) part->consumers.push_back(consumer);
    producers_.push_back(producer);
    return {static_cast<TensorId>(part - parts.begin()), region};
  }

  void add_op(const Node& node, const Kernel& kernel, const std::string& block) {
    OpSpec spec;
    spec.name = node.name + block;
    spec.dtype = to_string(node.dtype);
    if (!group_[kernel.expr].empty()) spec.group = group_[kernel.expr] + block;
    if (options_.costs == CostMode::published) {
      spec.kind = published_kind(node);
      spec.explicit_times["*"] = static_cast<double>(product(node.join_shape()));
    } else {
      spec.kind = kernel_kind(node);
      add_costs(node, kernel, spec);
    }
    builder_.add_op(std::move(spec));
  }

  void add_costs(const Node& node, const Kernel& kernel, OpSpec& spec) const {
    const Rect output = output_region(node, kernel.block);
    spec.flops = block_flops(node, kernel.block);
    const Stencil* stencil = node.as<Stencil>();
    for (const Operand& operand : kernel.operands) {
      const Bytes bytes = static_cast<Bytes>(operand.region.volume()) * size_of(program_.node(operand.expr).dtype);
      const auto copies = node.as<Formation>() != nullptr ? operand.pieces.size() : 1;
      if (stencil == nullptr || !stencil->read) spec.bytes_read += copies * bytes;
      if (operand.resident) spec.parameter_bytes += bytes;
      if (node.as<Formation>() != nullptr)
        spec.flops += static_cast<Flops>(copies - 1) * static_cast<Flops>(output.volume());
    }
    if (stencil != nullptr && stencil->read) {
      const double share = static_cast<double>(output.volume()) / static_cast<double>(product(node.shape));
      spec.bytes_read = static_cast<Bytes>(static_cast<double>(*stencil->read) * share);
    }
    if (node.as<Input>() == nullptr) spec.bytes_written = static_cast<Bytes>(output.volume()) * size_of(node.dtype);
    if (options_.costs == CostMode::seconds)
      spec.explicit_times["*"] = block_time(options_.speeds, spec.flops, spec.bytes_read + spec.bytes_written);
  }

  std::vector<Rect> add_tensors() {
    std::vector<TensorId> first_tensor;
    std::vector<Rect> regions;
    for (OpId op = 0; op < parts_.size(); ++op) {
      const Node& node = program_.node(kernels_[op].expr);
      if (parts_[op].empty()) parts_[op].push_back({output_region(node, kernels_[op].block), {}});
      first_tensor.push_back(static_cast<TensorId>(regions.size()));
      for (Part& part : parts_[op]) {
        const Bytes bytes = static_cast<Bytes>(part.region.volume()) * size_of(node.dtype);
        const TensorId tensor = builder_.add_tensor(op, bytes, transfer_time(node, bytes));
        const Shape shape = part.region.shape();
        builder_.set_shape(tensor, {shape.begin(), shape.end()});
        for (const OpId consumer : part.consumers) builder_.add_consumer(tensor, consumer);
        regions.push_back(std::move(part.region));
      }
    }
    std::size_t next = 0;  // pieces were made in this order
    for (Kernel& kernel : kernels_)
      for (Operand& operand : kernel.operands)
        for (Piece& piece : operand.pieces) piece.tensor += first_tensor[producers_[next++]];
    return regions;
  }

  std::optional<Seconds> transfer_time(const Node& node, Bytes bytes) const {
    switch (options_.costs) {
      case CostMode::per_block:
        return std::nullopt;
      case CostMode::published:
        return 4 * static_cast<double>(product(node.join_shape()));
      case CostMode::seconds:
        return options_.speeds.latency + static_cast<double>(bytes) / options_.speeds.link_bytes_per_second;
    }
    throw InternalError("cost mode: unknown value; required one of CostMode");
  }

  const Program& program_;
  const Plan& plan_;
  const LowerOptions& options_;
  GraphBuilder builder_;
  std::vector<char> updated_;
  std::vector<std::string> group_;  // colocation group per expression; empty: none
  std::vector<OpId> first_op_;
  std::vector<std::vector<Part>> parts_;  // by op
  std::vector<Kernel> kernels_;
  std::vector<OpId> producers_;  // of every piece, in order
};

Dense gather(const Operand& operand, const Lowered& lowered, const std::vector<Dense>& tensors, const Dense* input) {
  if (operand.resident) return cut(*input, Rect::whole(input->shape), operand.region);
  Dense result(operand.region.shape());
  for (const Piece& piece : operand.pieces)
    paste(cut(tensors[piece.tensor], lowered.tensor_regions[piece.tensor], piece.region), piece.region, result,
          operand.region);
  return result;
}

}  // namespace

Lowered lower(const Program& program, const Plan& plan, const LowerOptions& options) {
  check(program, plan);
  return Lowering(program, plan, options).run();
}

Values run_lowered(const Program& program, const Lowered& lowered, const Values& inputs, const Variables& variables) {
  Values results;
  std::map<ExprId, std::vector<char>> written;
  std::vector<Dense> tensors(lowered.graph.tensor_count());
  const auto input_of = [&](ExprId id) {
    const auto found = inputs.find(id);
    return found == inputs.end() ? nullptr : &found->second;
  };
  for (const OpId op : lowered.graph.topological_order()) {
    const Kernel& kernel = lowered.kernels[op];
    const Node& node = program.node(kernel.expr);
    std::vector<Dense> operands;
    for (const Operand& operand : kernel.operands) {
      if (node.as<Formation>() == nullptr)
        operands.push_back(gather(operand, lowered, tensors, input_of(operand.expr)));
      else
        for (const Piece& piece : operand.pieces) operands.push_back(tensors[piece.tensor]);
    }
    const Rect covers = output_region(node, kernel.block);
    const Dense block = node.as<Input>() != nullptr ? cut(*input_of(kernel.expr), Rect::whole(node.shape), covers)
                                                    : evaluate_block(node, kernel.block, operands, variables);
    for (const TensorId tensor : lowered.graph.outputs(op))
      tensors[tensor] = cut(block, covers, lowered.tensor_regions[tensor]);
    const Einsum* einsum = node.as<Einsum>();
    if (einsum != nullptr && einsum->aggregate) continue;  // a partial result; its formation is the value
    Dense& value = results.try_emplace(kernel.expr, node.shape).first->second;
    paste(block, covers, value, Rect::whole(node.shape));
    std::vector<char>& marks = written.try_emplace(kernel.expr, value.values.size(), 0).first->second;
    for_each_index(covers, [&](const std::vector<Index>& index) {
      char& mark = marks[static_cast<std::size_t>(offset_in(node.shape, index))];
      DOPPLER_CHECK(mark == 0, "'{}' writes an element twice", node.name);
      mark = 1;
    });
  }
  for (const auto& [id, marks] : written)
    DOPPLER_CHECK(std::find(marks.begin(), marks.end(), 0) == marks.end(), "'{}' leaves an element unwritten",
                  program.node(id).name);
  return results;
}

}  // namespace doppler::program
