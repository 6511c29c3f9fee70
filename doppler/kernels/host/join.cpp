#include <algorithm>

#include "doppler/kernels/array.h"
#include "doppler/kernels/block_kernel.h"
#include "doppler/kernels/element.h"
#include "doppler/kernels/host/lane_code.h"
#include "doppler/kernels/host/lane_fold.h"
#include "doppler/kernels/loop_nest.h"

namespace doppler {

using program::DType;
using program::Index;

namespace {

// The nest of an einsum. The innermost two loops make one lane: `lane` and, where that is short, `row` around it. The
// lane runs along the output, whose elements then take one folded value each, or along a reduced label, and is folded
// to one element per row. Steps are those of the operands, then that of the output.
struct JoinLoops {
  std::vector<Loop> outer;    // of the output
  std::vector<Loop> reduced;  // inside of rows
  Loop row, lane;
  bool lane_is_reduced = false;
  Index rows_per_lane = 1;
};

JoinLoops make_loops(const EinsumBlock& block, const std::vector<char>& reads) {
  const std::size_t operands = block.steps.size();
  const std::vector<Index> output_steps = block.output_steps();
  std::vector<Loop> output, reduced;
  for (std::size_t label = 0; label < block.sizes.size(); ++label) {
    Loop loop{block.sizes[label], {}};
    for (std::size_t k = 0; k < operands; ++k) loop.steps.push_back(reads[k] ? block.steps[k][label] : 0);
    loop.steps.push_back(output_steps[label]);
    (label < block.rank ? output : reduced).push_back(std::move(loop));
  }
  JoinLoops result{collapsed(output), collapsed(reduced), {}, {}};
  const Loop single{1, std::vector<Index>(operands + 1, 0)};
  result.row = result.lane = single;

  // Lanes should be long and contiguous in the operands; writing the output contiguously counts half as much.
  const auto merit = [&](const Loop& loop) {
    const auto contiguous = std::count(loop.steps.begin(), loop.steps.end() - 1, 1);
    return (2 * contiguous + (loop.steps.back() == 1 ? 1 : 0)) * std::min<Index>(loop.size, kLaneSize);
  };
  const auto best = std::max_element(result.reduced.begin(), result.reduced.end(),
                                     [&](const Loop& a, const Loop& b) { return merit(a) < merit(b); });
  const bool has_output = !result.outer.empty();
  result.lane_is_reduced = best != result.reduced.end() && (!has_output || merit(*best) > merit(result.outer.back()));
  if (result.lane_is_reduced) {
    result.lane = *best;
    result.reduced.erase(best);
  } else if (has_output) {
    result.lane = result.outer.back();
    result.outer.pop_back();
  }
  if (2 * result.lane.size <= static_cast<Index>(kLaneSize) && !result.outer.empty()) {
    result.row = result.outer.back();
    result.outer.pop_back();
    result.rows_per_lane = std::min<Index>(result.row.size, kLaneSize / result.lane.size);
  }
  return result;
}

// Gathers rows × columns elements of another dtype, or of steps other than one, into a lane.
template <typename To, typename From>
void gather(const From* from, Index row_step, Index step, Index rows, Index columns, To* to) {
  for (Index row = 0; row < rows; ++row, from += row_step, to += columns) {
    if (step == 0)
      std::fill_n(to, columns, element_cast<To>(*from));
    else
      for (Index i = 0; i < columns; ++i) to[i] = element_cast<To>(from[i * step]);
  }
}

// Computes in T, the widest dtype that the join touches.
template <typename T>
class Join final : public BlockKernel {
 public:
  Join(const program::Einsum& einsum, const EinsumBlock& block, DType dtype, const program::Variables& variables)
      : code_(einsum.join, variables),
        aggregate_(einsum.aggregate),
        dtypes_(block.dtypes),
        result_(block.result),
        dtype_(dtype),
        operand_count_(block.steps.size()) {
    for (std::size_t k = 0; k < operand_count_; ++k) reads_.push_back(code_.reads(k) ? 1 : 0);
    loops_ = make_loops(block, reads_);
  }

  std::size_t work_bytes() const override {
    // Lanes of the operands, the registers, and one each for the joined and the folded values; then offsets and
    // pointers.
    return (operand_count_ + code_.register_count() + 2) * kLaneSize * sizeof(T) +
           (2 * operand_count_ + 1) * sizeof(Index);
  }

  void run(DeviceId, std::span<const std::byte* const> operands, std::byte* output, std::byte* work) const override {
    T* const lanes = reinterpret_cast<T*>(work);
    Run run{operands,
            output,
            lanes,
            lanes + operand_count_ * kLaneSize,
            lanes + (operand_count_ + code_.register_count()) * kLaneSize,
            nullptr,
            {},
            nullptr};
    run.folded = run.joined + kLaneSize;
    Index* const offsets = reinterpret_cast<Index*>(run.folded + kLaneSize);
    std::fill_n(offsets, operand_count_ + 1, 0);
    run.offsets = {offsets, operand_count_ + 1};
    run.arguments = reinterpret_cast<const T**>(offsets + operand_count_ + 1);
    code_.prepare(run.registers);
    for_each_offset(loops_.outer, run.offsets, [&] {
      for (Index row = 0; row < loops_.row.size; row += loops_.rows_per_lane) {
        const Index rows = std::min(loops_.rows_per_lane, loops_.row.size - row);
        move(run, loops_.row, row);
        loops_.lane_is_reduced ? fold_rows(run, rows) : fill_rows(run, rows);
        move(run, loops_.row, -row);
      }
    });
  }

 private:
  // Where one run stands.
  struct Run {
    std::span<const std::byte* const> operands;
    std::byte* output;
    T *lanes, *registers, *joined, *folded;
    std::span<Index> offsets;  // of the operands, then of the output
    const T** arguments;
  };

  static void move(Run& run, const Loop& loop, Index turns) {
    for (std::size_t k = 0; k < run.offsets.size(); ++k) run.offsets[k] += turns * loop.steps[k];
  }

  // The lane runs along the output.
  void fill_rows(Run& run, Index rows) const {
    for (Index column = 0; column < loops_.lane.size; column += kLaneSize) {
      const Index columns = std::min<Index>(kLaneSize, loops_.lane.size - column);
      const auto count = static_cast<std::size_t>(rows * columns);
      move(run, loops_.lane, column);
      // The output is row-major, so rows follow each other there.
      T* const in_place = reinterpret_cast<T*>(run.output) + run.offsets.back();
      T* const target = result_ == dtype_ ? in_place : run.folded;
      bool first = true;
      for_each_offset(loops_.reduced, run.offsets, [&] {
        join(run, rows, columns, first ? target : run.joined);
        if (!first) fold_lane(*aggregate_, target, run.joined, count);
        first = false;
      });
      if (target != in_place) store(run, target, count);
      move(run, loops_.lane, -column);
    }
  }

  // The lane runs along a reduced label.
  void fold_rows(Run& run, Index rows) const {
    std::fill_n(run.folded, rows, element_cast<T>(program::neutral(*aggregate_)));
    for_each_offset(loops_.reduced, run.offsets, [&] {
      for (Index column = 0; column < loops_.lane.size; column += kLaneSize) {
        const Index columns = std::min<Index>(kLaneSize, loops_.lane.size - column);
        move(run, loops_.lane, column);
        join(run, rows, columns, run.joined);
        for (Index row = 0; row < rows; ++row)
          run.folded[row] =
              fold_to_one(*aggregate_, run.folded[row], run.joined + row * columns, static_cast<std::size_t>(columns));
        move(run, loops_.lane, -column);
      }
    });
    store(run, run.folded, static_cast<std::size_t>(rows));
  }

  void join(Run& run, Index rows, Index columns, T* target) const {
    for (std::size_t k = 0; k < operand_count_; ++k)
      run.arguments[k] = reads_[k] ? load(run, k, rows, columns) : nullptr;
    code_.run({run.arguments, operand_count_}, run.registers, target, static_cast<std::size_t>(rows * columns));
  }

  // Returns the operand itself where it lies as the lane needs it, a copy otherwise.
  const T* load(const Run& run, std::size_t k, Index rows, Index columns) const {
    const Index row_step = loops_.row.steps[k], step = loops_.lane.steps[k], offset = run.offsets[k];
    const bool contiguous = (columns == 1 || step == 1) && (rows == 1 || row_step == columns);
    if (dtypes_[k] == dtype_ && contiguous) return reinterpret_cast<const T*>(run.operands[k]) + offset;
    T* const lane = run.lanes + k * kLaneSize;
    with_element("operand", dtypes_[k], [&](auto element) {
      using From = decltype(element);
      gather(reinterpret_cast<const From*>(run.operands[k]) + offset, row_step, step, rows, columns, lane);
    });
    return lane;
  }

  void store(const Run& run, const T* values, std::size_t count) const {
    with_element("result", result_, [&](auto element) {
      using To = decltype(element);
      To* const to = reinterpret_cast<To*>(run.output) + run.offsets.back();
      for (std::size_t i = 0; i < count; ++i) to[i] = element_cast<To>(values[i]);
    });
  }

  LaneCode<T> code_;
  std::optional<program::Aggregate> aggregate_;
  std::vector<DType> dtypes_;  // of the operands
  DType result_, dtype_;       // dtype_ is that of T
  std::size_t operand_count_;
  std::vector<char> reads_;
  JoinLoops loops_;
};

}  // namespace

DType widest_dtype(const program::Einsum& einsum, const EinsumBlock& block) {
  bool complex = false, wide = false;
  const auto see = [&](DType dtype) {
    with_element("einsum", dtype, [&](auto element) {
      complex = complex || kIsComplex<decltype(element)>;
      wide = wide || dtype == DType::f64 || dtype == DType::c128;
    });
  };
  for (const DType dtype : block.dtypes) see(dtype);
  for (const program::Scalar::Instruction& i : einsum.join.code())
    if (i.op == program::Scalar::Op::convert) see(i.dtype);
  see(block.result);
  if (complex) return wide ? DType::c128 : DType::c64;
  return wide ? DType::f64 : DType::f32;
}

std::unique_ptr<BlockKernel> make_join(const program::Einsum& einsum, const EinsumBlock& block,
                                       const program::Variables& variables) {
  const DType dtype = widest_dtype(einsum, block);
  return with_element("einsum", dtype, [&](auto element) -> std::unique_ptr<BlockKernel> {
    return std::make_unique<Join<decltype(element)>>(einsum, block, dtype, variables);
  });
}

}  // namespace doppler
