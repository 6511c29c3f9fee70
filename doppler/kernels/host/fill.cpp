#include <algorithm>

#include "doppler/kernels/block_kernel.h"
#include "doppler/kernels/element.h"

namespace doppler {
namespace {

using program::Index;

template <typename T>
class FillKernel final : public BlockKernel {
 public:
  FillKernel(const program::Fill& fill, const program::Rect& block)
      : value_(static_cast<T>(fill.value)), above_(static_cast<T>(fill.above)) {
    const program::Shape shape = block.shape();
    const std::size_t rank = shape.size();
    columns_ = rank == 0 ? 1 : shape[rank - 1];
    total_ = program::product(shape);
    if (rank < 2) {  // no diagonal
      rows_ = 1;
      diagonal_ = columns_;
    } else {
      rows_ = shape[rank - 2];
      diagonal_ = block.begin[rank - 2] - block.begin[rank - 1] + 1;
    }
  }

  void run(DeviceId, std::span<const std::byte* const>, std::byte* output, std::byte*) const override {
    T* out = reinterpret_cast<T*>(output);
    for (Index row = 0; row < total_ / columns_; ++row, out += columns_) {
      const Index below = std::clamp<Index>(diagonal_ + row % rows_, 0, columns_);
      std::fill_n(out, below, value_);
      std::fill_n(out + below, columns_ - below, above_);
    }
  }

 private:
  T value_, above_;
  Index total_, rows_, columns_;
  Index diagonal_;  // how many elements of the first row are not above the diagonal; may be negative
};

}  // namespace

std::unique_ptr<BlockKernel> make_fill(const program::Fill& fill, program::DType dtype, const program::Rect& block) {
  return with_element("fill", dtype, [&](auto element) -> std::unique_ptr<BlockKernel> {
    return std::make_unique<FillKernel<decltype(element)>>(fill, block);
  });
}

}  // namespace doppler
