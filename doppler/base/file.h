#pragma once

#include <string>
#include <string_view>

namespace doppler {

// The whole file; throws InputError if it cannot be read or is larger than 4 GiB. "-" is standard input.
std::string read_file(const std::string& path);

// Writes to a temporary file beside `path` and renames it, so that readers see the old content or the new,
// never half of it. Throws InputError if the place cannot be written. "-" is standard output.
void write_file_atomically(const std::string& path, std::string_view content);

}  // namespace doppler
