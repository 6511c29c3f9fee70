#include "doppler/kernels/array.h"

#include "doppler/kernels/element.h"

namespace doppler {

Array::Array(program::DType element, program::Shape size)
    : dtype(element),
      shape(std::move(size)),
      bytes(static_cast<std::size_t>(program::product(shape)) * program::size_of(element)) {}

Array to_array(const program::Dense& dense, program::DType dtype) {
  return with_element("array", dtype, [&](auto element) {
    using T = decltype(element);
    Array result(dtype, dense.shape);
    T* const values = reinterpret_cast<T*>(result.bytes.data());
    for (std::size_t i = 0; i < dense.values.size(); ++i) values[i] = element_cast<T>(dense.values[i]);
    return result;
  });
}

program::Dense to_dense(const Array& array) {
  return with_element("array", array.dtype, [&](auto element) {
    using T = decltype(element);
    program::Dense result(array.shape);
    const T* const values = reinterpret_cast<const T*>(array.bytes.data());
    for (std::size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = element_cast<std::complex<double>>(values[i]);
    return result;
  });
}

}  // namespace doppler
