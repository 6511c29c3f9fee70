#pragma once

#include "doppler/kernels/onnx/loops.h"
#include "doppler/kernels/onnx/making.h"

namespace doppler::model {

// What a fused operator does to its result in the end.
struct Activation {
  Unary function = Unary::count;  // none
  float p = 0, q = 0;

  bool any() const { return function != Unary::count; }
  void apply(float* values, std::size_t count) const {
    if (any()) float_loops<float>().unary[static_cast<std::size_t>(function)](values, values, count, p, q);
  }
  void apply(double* values, std::size_t count) const {
    if (any())
      float_loops<double>().unary[static_cast<std::size_t>(function)](values, values, count, static_cast<double>(p),
                                                                      static_cast<double>(q));
  }
};

// Reads the attributes `activation` and `activation_params`, and `activation_alpha` … of com.microsoft.
Activation activation_of(const Spec& spec);

}  // namespace doppler::model
