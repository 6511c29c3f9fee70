// Operators that move elements between channels and space, and between the layouts of the two.

#include <algorithm>

#include "doppler/kernels/onnx/movement.h"
#include "doppler/kernels/onnx/strided.h"

namespace doppler::model {

Index block_of(Layout layout) { return layout == Layout::blocked16 ? 16 : layout == Layout::blocked8 ? 8 : 1; }

void check_layout(const TensorType& type) {
  if (type.layout == Layout::row_major) return;
  if (type.shape.size() < 3 || type.shape.size() > 5 || type.shape[1] % block_of(type.layout) != 0)
    refuse(to_string(type), "3 to 5 dimensions and whole blocks of channels in this layout");
}

namespace {

// Where the elements of a tensor lie in memory: sizes and steps of N, the blocks of channels, the channels of a block,
// and space.
struct MemoryDims {
  Shape dims;
  std::vector<Index> steps;
};

// `split` is the size of the blocks into which the channels are cut, so that two layouts can be walked along together.
MemoryDims memory_dims(const TensorType& type, Index split) {
  const Shape& shape = type.shape;
  const Index block = block_of(type.layout);
  Index space = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) space *= shape[i];
  const Index channels = shape[1];
  // Dimensions: N, blocks of `split` channels, channels in one, space.
  MemoryDims result{{shape[0], channels / split, split, space}, {}};
  if (type.layout == Layout::channels_last)
    result.steps = {channels * space, split, 1, channels};
  else if (block == 1)
    result.steps = {channels * space, split * space, space, 1};
  else
    result.steps = {channels * space, split * space, 1, block};  // split is then the block itself
  return result;
}

// Both operators are a permutation of six dimensions; `in` and `out` say what the memories look like.
std::unique_ptr<NodeKernel> make_space_kernel(const Spec& spec, const Shape& out, const Shape& dims,
                                              const std::vector<std::size_t>& order) {
  const std::vector<Index> steps = row_major_steps(dims);
  Shape permuted;
  std::vector<Index> from;
  for (const std::size_t i : order) {
    permuted.push_back(dims[i]);
    from.push_back(steps[i]);
  }
  const StridedCopy copy(size_of(spec.element(0)), permuted, from, row_major_steps(permuted));
  return make_function_kernel(spec, {{spec.element(0), out}},
                              [copy](const Run& run) { copy.run(run.inputs[0], run.outputs[0]); });
}

Index block_size(const Spec& spec) {
  const Index block = spec.integer("blocksize", 0);
  if (block < 1 || block > 1 << 20) refuse(fmt::format("blocksize {}", block), "1 or more");
  return block;
}

}  // namespace

std::unique_ptr<NodeKernel> make_depth_to_space(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_rank(0, 4, 4);
  const Index b = block_size(spec);
  const Shape& x = spec.shape(0);
  if (x[1] % (b * b) != 0) refuse(fmt::format("{} channels", x[1]), fmt::format("a multiple of {}", b * b));
  const Shape out = {x[0], x[1] / (b * b), x[2] * b, x[3] * b};
  const std::string mode = spec.text("mode", "DCR");
  if (mode == "CRD") return make_space_kernel(spec, out, {x[0], out[1], b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3});
  if (mode != "DCR") refuse(fmt::format("mode '{}'", mode), "DCR or CRD");
  return make_space_kernel(spec, out, {x[0], b, b, out[1], x[2], x[3]}, {0, 3, 4, 1, 5, 2});
}

std::unique_ptr<NodeKernel> make_space_to_depth(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_rank(0, 4, 4);
  const Index b = block_size(spec);
  const Shape& x = spec.shape(0);
  if (x[2] % b != 0 || x[3] % b != 0) refuse(program::to_string(x), fmt::format("multiples of {}", b));
  const Shape out = {x[0], x[1] * b * b, x[2] / b, x[3] / b};
  return make_space_kernel(spec, out, {x[0], x[1], out[2], b, out[3], b}, {0, 3, 5, 1, 2, 4});
}

std::unique_ptr<NodeKernel> make_reorder(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  TensorType out{spec.element(0), spec.shape(0), spec.output_layout(0)};
  const TensorType& in = spec.type(0);
  if (in.layout == out.layout) return make_copy(spec, out);
  check_layout(in);
  check_layout(out);
  if (in.shape.size() < 3) refuse(to_string(in), "3 to 5 dimensions");
  const Index in_block = block_of(in.layout), out_block = block_of(out.layout);
  if (in_block > 1 && out_block > 1) refuse("two kinds of blocks", "one of them, or none");
  const Index split = std::max(in_block, out_block);
  const MemoryDims from = memory_dims(in, split), to = memory_dims(out, split);
  const StridedCopy copy(size_of(in.element), from.dims, from.steps, to.steps);
  return make_function_kernel(spec, {out}, [copy](const Run& run) { copy.run(run.inputs[0], run.outputs[0]); });
}

}  // namespace doppler::model
