#pragma once

// The torch_*_test.cpp are the only files of these tests that see torch.

#include <span>
#include <torch/torch.h>

#include <gtest/gtest.h>

namespace doppler::test {

inline constexpr double kTorchTolerance = 1e-9;

// A leaf that is cut from a flat array front to back.
class Leaves {
 public:
  explicit Leaves(std::span<const double> values)
      : flat_(torch::tensor(at::ArrayRef<double>(values.data(), values.size()), torch::kFloat64).requires_grad_()) {}
  torch::Tensor next(at::IntArrayRef shape) {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
    const torch::Tensor part = flat_.slice(0, at_, at_ + size).view(shape);
    at_ += size;
    return part;
  }
  bool used_up() const { return at_ == flat_.numel(); }
  void expect_gradient(std::span<const double> found, double tolerance = kTorchTolerance) const {
    const torch::Tensor gradient = flat_.grad().contiguous();
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], gradient.data_ptr<double>()[i], tolerance) << i;
  }

 private:
  torch::Tensor flat_;
  std::int64_t at_ = 0;
};

}  // namespace doppler::test
