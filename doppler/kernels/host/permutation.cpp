#include "doppler/kernels/block_kernel.h"
#include "doppler/kernels/strided_copy.h"

namespace doppler {
namespace {

class Permutation final : public BlockKernel {
 public:
  explicit Permutation(StridedCopy copy) : copy_(std::move(copy)) {}

  void run(DeviceId, std::span<const std::byte* const> operands, std::byte* output, std::byte*) const override {
    copy_.run(operands[0], output);
  }

 private:
  StridedCopy copy_;
};

}  // namespace

std::unique_ptr<BlockKernel> make_permutation(const program::Einsum& einsum, const EinsumBlock& block) {
  if (einsum.aggregate || block.steps.size() != 1 || block.dtypes[0] != block.result ||
      einsum.join != program::Scalar::argument(0))
    return nullptr;
  const std::vector<program::Index> output = block.output_steps();
  std::vector<Loop> loops;
  for (std::size_t label = 0; label < block.sizes.size(); ++label)
    loops.push_back({block.sizes[label], {block.steps[0][label], output[label]}});
  return std::make_unique<Permutation>(StridedCopy(std::move(loops), program::size_of(block.result)));
}

}  // namespace doppler
