#include "doppler/kernels/onnx/strided.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "doppler/kernels/onnx/making.h"

namespace doppler::model {

StridedCopy::StridedCopy(std::size_t element_bytes, const Shape& dims, const std::vector<Index>& from,
                         const std::vector<Index>& to)
    : bytes_(element_bytes), empty_(false) {
  std::vector<Dim> joined;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) empty_ = true;
    if (dims[i] == 1) continue;
    if (!joined.empty() && joined.back().from == from[i] * dims[i] && joined.back().to == to[i] * dims[i])
      joined.back() = {joined.back().size * dims[i], from[i], to[i]};
    else
      joined.push_back({dims[i], from[i], to[i]});
  }
  if (empty_) return;
  // Writing goes along memory; where reading does not, the dimension along which it would is the next one out.
  std::stable_sort(joined.begin(), joined.end(), [](const Dim& a, const Dim& b) { return a.to > b.to; });
  if (!joined.empty()) {
    row_ = joined.back();
    joined.pop_back();
  }
  auto next = joined.end();
  if (row_.from != 1) next = std::find_if(joined.begin(), joined.end(), [](const Dim& dim) { return dim.from == 1; });
  if (next == joined.end() && !joined.empty()) next = joined.end() - 1;
  if (next != joined.end()) {
    rows_ = *next;
    joined.erase(next);
  }
  outer_ = std::move(joined);
}

template <typename T>
void StridedCopy::run_typed(const T* from, T* to) const {
  constexpr Index kTile = 16;  // rows and columns of a transposition that stay in the nearest cache
  std::array<Index, 2 * kMostDimensions> at{};
  while (true) {
    if (row_.from == 1 && row_.to == 1) {
      for (Index r = 0; r < rows_.size; ++r)
        std::memcpy(to + r * rows_.to, from + r * rows_.from, static_cast<std::size_t>(row_.size) * sizeof(T));
    } else if (row_.from == 0 && row_.to == 1) {
      for (Index r = 0; r < rows_.size; ++r) std::fill_n(to + r * rows_.to, row_.size, from[r * rows_.from]);
    } else {
      for (Index r0 = 0; r0 < rows_.size; r0 += kTile)
        for (Index i0 = 0; i0 < row_.size; i0 += kTile) {
          const Index r1 = std::min(r0 + kTile, rows_.size), i1 = std::min(i0 + kTile, row_.size);
          for (Index r = r0; r < r1; ++r) {
            const T* x = from + r * rows_.from;
            T* out = to + r * rows_.to;
            for (Index i = i0; i < i1; ++i) out[i * row_.to] = x[i * row_.from];
          }
        }
    }
    std::size_t i = outer_.size();
    while (i > 0) {
      const Dim& dim = outer_[i - 1];
      from += dim.from;
      to += dim.to;
      if (++at[i - 1] < dim.size) break;
      from -= dim.from * dim.size;
      to -= dim.to * dim.size;
      at[--i] = 0;
    }
    if (i == 0) return;
  }
}

void StridedCopy::run(const std::byte* from, std::byte* to) const {
  if (empty_) return;
  switch (bytes_) {
    case 1:
      return run_typed(reinterpret_cast<const std::uint8_t*>(from), reinterpret_cast<std::uint8_t*>(to));
    case 2:
      return run_typed(reinterpret_cast<const std::uint16_t*>(from), reinterpret_cast<std::uint16_t*>(to));
    case 4:
      return run_typed(reinterpret_cast<const std::uint32_t*>(from), reinterpret_cast<std::uint32_t*>(to));
    default:
      return run_typed(reinterpret_cast<const std::uint64_t*>(from), reinterpret_cast<std::uint64_t*>(to));
  }
}

}  // namespace doppler::model
