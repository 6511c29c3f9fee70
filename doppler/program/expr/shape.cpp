#include "doppler/program/expr/shape.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  Bytes bytes;
};
constexpr DTypeRow kDTypes[] = {{DType::f16, "f16", 2},   {DType::f32, "f32", 4}, {DType::f64, "f64", 8},
                                {DType::c32, "c32", 4},   {DType::c64, "c64", 8}, {DType::c128, "c128", 16},
                                {DType::bf16, "bf16", 2}, {DType::i8, "i8", 1},   {DType::i16, "i16", 2},
                                {DType::i32, "i32", 4},   {DType::i64, "i64", 8}};
const DTypeRow& row(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view to_string(DType dtype) { return row(dtype).name; }
Bytes size_of(DType dtype) { return row(dtype).bytes; }
bool is_complex(DType dtype) { return dtype >= DType::c32 && dtype <= DType::c128; }

DType complex_of(DType real) {
  DOPPLER_CHECK(!is_complex(real), "found {}", to_string(real));
  return static_cast<DType>(static_cast<int>(real) + 3);
}

DType real_of(DType complex) {
  DOPPLER_CHECK(is_complex(complex), "found {}", to_string(complex));
  return static_cast<DType>(static_cast<int>(complex) - 3);
}

DType parse_dtype(std::string_view text) {
  for (const DTypeRow& candidate : kDTypes)
    if (candidate.name == text && candidate.dtype <= DType::c128) return candidate.dtype;
  throw InputError(fmt::format("dtype: found '{}'; required f16, f32, f64, c32, c64 or c128", text));
}

Index product(const std::vector<Index>& values) {
  Index result = 1;
  for (const Index value : values) result *= value;
  return result;
}

std::string to_string(const std::vector<Index>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

Shape Rect::shape() const {
  Shape result(begin.size());
  for (std::size_t i = 0; i < begin.size(); ++i) result[i] = end[i] - begin[i];
  return result;
}

Rect intersect(const Rect& a, const Rect& b) {
  Rect result = a;
  for (std::size_t i = 0; i < a.begin.size(); ++i) {
    result.begin[i] = std::max(a.begin[i], b.begin[i]);
    result.end[i] = std::max(result.begin[i], std::min(a.end[i], b.end[i]));
  }
  return result;
}

Rect shifted(const Rect& rect, const Shape& by, Index sign) {
  Rect result = rect;
  for (std::size_t i = 0; i < by.size(); ++i) {
    result.begin[i] += sign * by[i];
    result.end[i] += sign * by[i];
  }
  return result;
}

Rect block_rect(const Shape& shape, const Box& box, const std::vector<Index>& block) {
  Rect result{Shape(shape.size()), Shape(shape.size())};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    result.begin[i] = block_begin(block[i], shape[i], box[i]);
    result.end[i] = block_begin(block[i] + 1, shape[i], box[i]);
  }
  return result;
}

Index offset_in(const Shape& shape, const std::vector<Index>& index) {
  Index offset = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
  return offset;
}

}  // namespace doppler::program
