#pragma once

#include <string>
#include <string_view>

#include "doppler/kernels/array.h"

namespace doppler {

// Reads NumPy's array file, versions 1.0 and 2.0: little-endian f4, f8, c8 and c16, in C or Fortran order. Throws
// InputError, whose text starts with `where`.
Array parse_npy(const std::string& where, std::string_view content);
// Writes it in C order, version 1.0.
std::string to_npy(const Array& array);

}  // namespace doppler
