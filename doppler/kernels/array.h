#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <new>

#include "doppler/program/expr/evaluate.h"

namespace doppler {

// A piece of memory that begins on the boundary of a cache line and is not initialised.
class AlignedBytes {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t size)
      : data_(static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment}))), size_(size) {}

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

// A dense row-major array in its own dtype: what goes into a program that runs for real, and what comes out.
struct Array {
  program::DType dtype = program::DType::f32;
  program::Shape shape;
  AlignedBytes bytes;

  Array() = default;
  Array(program::DType element, program::Shape size);
  std::size_t count() const { return static_cast<std::size_t>(program::product(shape)); }
};
using Arrays = std::map<program::ExprId, Array>;

// Convert from and to the reference's complex doubles. to_array() throws InputError for a dtype without kernels.
Array to_array(const program::Dense& dense, program::DType dtype);
program::Dense to_dense(const Array& array);

}  // namespace doppler
