#pragma once

#include <string>
#include <string_view>

#include "doppler/kernels/array.h"

namespace doppler {

// What an array file says, whatever its elements.
struct NpyContent {
  std::string_view descriptor;  // "<f4"
  bool fortran_order = false;   // the first index is fastest
  program::Shape shape;
  std::string_view data;
};
// Reads NumPy's array file, versions 1.0 and 2.0; no size may be below `smallest`. Throws InputError, whose text starts
// with `where`.
NpyContent parse_npy_content(const std::string& where, std::string_view content, program::Index smallest);
// Throws InputError if there are not as many elements as the shape says.
void check_npy_data(const std::string& where, const NpyContent& npy, std::size_t element_bytes);
// Copies the elements, of which there are enough, to row-major memory.
void copy_npy_data(const NpyContent& npy, std::size_t element_bytes, std::byte* to);
// Writes an array file of version 1.0, in C order.
std::string make_npy(std::string_view descriptor, const program::Shape& shape, std::string_view data);

// Reads NumPy's array file, versions 1.0 and 2.0: little-endian f4, f8, c8 and c16, in C or Fortran order. Throws
// InputError, whose text starts with `where`.
Array parse_npy(const std::string& where, std::string_view content);
// Writes it in C order, version 1.0.
std::string to_npy(const Array& array);

}  // namespace doppler
