#pragma once

#include <array>

#include "doppler/kernels/onnx/making.h"

namespace doppler::model {

// How several tensors are walked along together, with broadcasting: dimensions that can be one are one, and the steps
// of each tensor, in elements, are 0 where it stays. The last step is 0 or 1.
template <std::size_t Operands>
struct BroadcastWalk {
  Shape dims;  // at least one
  std::array<std::vector<Index>, Operands> steps;

  Index row() const { return dims.back(); }
  Index rows() const {
    Index count = 1;
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) count *= dims[i];
    return count;
  }

  BroadcastWalk() = default;
  BroadcastWalk(const Shape& out, const std::array<Shape, Operands>& shapes) {
    const std::size_t rank = out.size();
    std::array<std::vector<Index>, Operands> full;
    for (std::size_t o = 0; o < Operands; ++o) {
      Shape aligned(rank - shapes[o].size(), 1);
      aligned.insert(aligned.end(), shapes[o].begin(), shapes[o].end());
      full[o] = row_major_steps(aligned);
      for (std::size_t i = 0; i < rank; ++i)
        if (aligned[i] == 1) full[o][i] = 0;
    }
    for (std::size_t i = 0; i < rank; ++i) {
      if (out[i] == 1) continue;
      bool joins = !dims.empty();
      for (std::size_t o = 0; o < Operands && joins; ++o) joins = steps[o].back() == full[o][i] * out[i];
      if (joins) {
        dims.back() *= out[i];
        for (std::size_t o = 0; o < Operands; ++o) steps[o].back() = full[o][i];
      } else {
        dims.push_back(out[i]);
        for (std::size_t o = 0; o < Operands; ++o) steps[o].push_back(full[o][i]);
      }
    }
    if (dims.empty()) {
      dims = {1};
      for (auto& list : steps) list = {0};
    }
  }

  // Calls visit(offsets, first) for each row: where each tensor stands, and the row's first element in the output.
  template <typename Visit>
  void for_each_row(Visit visit) const {
    const Index count = rows(), length = row();
    if (length == 0) return;
    std::array<Index, Operands> offsets{};
    std::array<Index, kMostDimensions> at{};
    for (Index r = 0; r < count; ++r) {
      visit(offsets, r * length);
      for (std::size_t i = dims.size() - 1; i-- > 0;) {
        for (std::size_t o = 0; o < Operands; ++o) offsets[o] += steps[o][i];
        if (++at[i] < dims[i]) break;
        for (std::size_t o = 0; o < Operands; ++o) offsets[o] -= steps[o][i] * dims[i];
        at[i] = 0;
      }
    }
  }
};

}  // namespace doppler::model
