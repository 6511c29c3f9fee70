#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "doppler/base/error.h"
#include "doppler/kernels/array.h"
#include "doppler/kernels/block_kernel.h"
#include "doppler/kernels/element.h"
#include "doppler/kernels/host/gemm.h"
#include "doppler/kernels/host/onednn.h"
#include "doppler/kernels/strided_copy.h"

namespace doppler {

using program::Index;

namespace {

using Labels = std::vector<std::uint32_t>;
using Steps = std::vector<Index>;

constexpr std::size_t kLine = AlignedBytes::kAlignment;
std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Every label of a contraction is of one kind: in both operands and the output (batch), in the output and the left
// (rows) or right operand (columns), or in both operands and summed up (inner).
struct LabelKinds {
  Labels batch, rows, columns, inner;
};

std::optional<LabelKinds> classify(const EinsumBlock& block) {
  LabelKinds kinds;
  const auto has = [&](std::size_t operand, std::uint32_t label) {
    const Labels& labels = block.labels[operand];
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  for (std::uint32_t label = 0; label < block.sizes.size(); ++label) {
    if (block.sizes[label] == 1) continue;
    const bool left = has(0, label), right = has(1, label), output = label < block.rank;
    if (!output && !(left && right)) return std::nullopt;  // summed up in one operand alone
    (output ? (left && right ? kinds.batch : left ? kinds.rows : kinds.columns) : kinds.inner).push_back(label);
  }
  return kinds;
}

Index size_of(const Labels& labels, const EinsumBlock& block) {
  Index size = 1;
  for (const std::uint32_t label : labels) size *= block.sizes[label];
  return size;
}

// Returns the step of the labels taken as one dimension, the last one fastest; nothing if the array has them otherwise.
std::optional<Index> joint_step(const Labels& labels, const EinsumBlock& block, const Steps& steps) {
  for (std::size_t i = 0; i + 1 < labels.size(); ++i)
    if (steps[labels[i]] != steps[labels[i + 1]] * block.sizes[labels[i + 1]]) return std::nullopt;
  return labels.empty() ? 1 : steps[labels.back()];
}

// One operand or the result as a stack of matrices, in place or through a copy.
struct Stack {
  MatrixSteps matrix;
  Steps batch;                      // step per batch label
  std::optional<StridedCopy> copy;  // to or from the packed stack
  std::size_t packed_bytes = 0;
};

Stack make_stack(const EinsumBlock& block, const Labels& batch, const Labels& rows, const Labels& columns,
                 const Steps& steps, bool result) {
  Stack stack;
  const Index row_count = size_of(rows, block), column_count = size_of(columns, block);
  const std::optional<Index> row = joint_step(rows, block, steps), column = joint_step(columns, block, steps);
  for (const std::uint32_t label : batch) stack.batch.push_back(steps[label]);
  if (row && column) {
    stack.matrix = {*row, *column};
    const bool rows_in_order = column_count == 1 || *column == 1;
    if (result ? rows_in_order : is_blas_matrix(row_count, column_count, stack.matrix)) return stack;
  }
  Labels order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  program::Shape shape;
  for (const std::uint32_t label : order) shape.push_back(block.sizes[label]);
  const Steps packed = row_major_steps(shape);
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Index in_place = steps[order[i]];
    loops.push_back({shape[i], result ? Steps{packed[i], in_place} : Steps{in_place, packed[i]}});
  }
  const std::size_t element_bytes = program::size_of(block.result);
  stack.copy.emplace(std::move(loops), element_bytes);
  stack.packed_bytes = whole_lines(static_cast<std::size_t>(program::product(shape)) * element_bytes);
  stack.matrix = {column_count, 1};
  stack.batch.assign(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  return stack;
}

struct ContractionPlan {
  Stack left, right, result;
  GemmShape gemm;
  std::vector<Loop> batch;  // over left, right, result
  bool swapped = false;     // left is operand 1

  std::size_t packed_bytes() const { return left.packed_bytes + right.packed_bytes + result.packed_bytes; }
};

ContractionPlan make_plan(const EinsumBlock& block, LabelKinds kinds, const Labels& inner, bool swapped) {
  if (swapped) std::swap(kinds.rows, kinds.columns);
  ContractionPlan plan;
  plan.swapped = swapped;
  plan.left = make_stack(block, kinds.batch, kinds.rows, inner, block.steps[swapped ? 1 : 0], false);
  plan.right = make_stack(block, kinds.batch, inner, kinds.columns, block.steps[swapped ? 0 : 1], false);
  plan.result = make_stack(block, kinds.batch, kinds.rows, kinds.columns, block.output_steps(), true);
  plan.gemm = {.m = size_of(kinds.rows, block),
               .n = size_of(kinds.columns, block),
               .k = size_of(inner, block),
               .a = plan.left.matrix,
               .b = plan.right.matrix,
               .c_row = plan.result.matrix.row};
  for (std::size_t i = 0; i < kinds.batch.size(); ++i)
    plan.batch.push_back(
        {block.sizes[kinds.batch[i]], {plan.left.batch[i], plan.right.batch[i], plan.result.batch[i]}});
  plan.batch = collapsed(plan.batch);
  return plan;
}

// Returns the plan that copies least, over the orders of the summed labels in either operand and both orders of the
// operands: the transposed product gives the transposed result.
ContractionPlan best_plan(const EinsumBlock& block, const LabelKinds& kinds) {
  std::optional<ContractionPlan> best;
  for (const std::size_t operand : {0, 1}) {
    Labels inner = kinds.inner;
    const Steps& steps = block.steps[operand];
    std::sort(inner.begin(), inner.end(), [&](auto a, auto b) { return steps[a] > steps[b]; });
    for (const bool swapped : {false, true}) {
      ContractionPlan plan = make_plan(block, kinds, inner, swapped);
      if (!best || plan.packed_bytes() < best->packed_bytes()) best = std::move(plan);
    }
  }
  return std::move(*best);
}

template <typename T>
class Contraction final : public BlockKernel {
 public:
  explicit Contraction(ContractionPlan plan) : plan_(std::move(plan)) {}

  std::size_t work_bytes() const override { return plan_.packed_bytes(); }

  void run(DeviceId, std::span<const std::byte* const> operands, std::byte* output, std::byte* work) const override {
    const std::byte* const left = packed(plan_.left, operands[plan_.swapped ? 1 : 0], work);
    const std::byte* const right = packed(plan_.right, operands[plan_.swapped ? 0 : 1], work + plan_.left.packed_bytes);
    std::byte* const result = plan_.result.copy ? work + plan_.left.packed_bytes + plan_.right.packed_bytes : output;
    std::array<Index, 3> offsets = {0, 0, 0};
    for_each_offset(plan_.batch, offsets, [&] {
      gemm(plan_.gemm, reinterpret_cast<const T*>(left) + offsets[0], reinterpret_cast<const T*>(right) + offsets[1],
           reinterpret_cast<T*>(result) + offsets[2]);
    });
    if (plan_.result.copy) plan_.result.copy->run(result, output);
  }

 private:
  static const std::byte* packed(const Stack& stack, const std::byte* operand, std::byte* work) {
    if (!stack.copy) return operand;
    stack.copy->run(operand, work);
    return work;
  }

  ContractionPlan plan_;
};

}  // namespace

std::vector<Index> EinsumBlock::output_steps() const {
  Steps by_label = row_major_steps({sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank)});
  by_label.resize(sizes.size(), 0);
  return by_label;
}

std::unique_ptr<BlockKernel> make_contraction(const program::Einsum& einsum, const EinsumBlock& block) {
  if (!einsum.is_contraction()) return nullptr;
  const std::optional<LabelKinds> kinds = classify(block);
  if (!kinds || (kinds->rows.empty() && kinds->columns.empty())) return nullptr;  // a dot product is no matrix product
  ContractionPlan plan = best_plan(block, *kinds);
  const Index most = std::max({plan.gemm.m, plan.gemm.n, plan.gemm.k, plan.gemm.a.row, plan.gemm.a.column,
                               plan.gemm.b.row, plan.gemm.b.column, plan.gemm.c_row});
  DOPPLER_CHECK(most <= std::numeric_limits<int>::max(), "a block of {} is beyond the BLAS", most);
  if (block.result == program::DType::f32) load_onednn();  // so that a lack of it is noticed before anything runs
  return with_element("contraction", block.result, [&](auto element) -> std::unique_ptr<BlockKernel> {
    return std::make_unique<Contraction<decltype(element)>>(std::move(plan));
  });
}

}  // namespace doppler
