#pragma once

#include <string_view>

namespace doppler {

// The version of doppler that this is, such as "0.1.0".
std::string_view version();

}  // namespace doppler
