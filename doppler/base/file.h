#pragma once

#include <string>
#include <string_view>

namespace doppler {

// The whole file; throws InputError if it cannot be read or is larger than 4 GiB. "-" is standard input.
std::string read_file(const std::string& path);

// Writes to a new file beside `path` and renames it, so that readers see the old content or the new, never half of it.
// A file that is replaced keeps its mode; through a link its target is replaced, and the link stays. Devices, pipes and
// open descriptors (/dev/stdout) are written in place. Throws InputError if the place cannot be written. "-" is
// standard output.
void write_file_atomically(const std::string& path, std::string_view content);
// Whether a file has such a name as the new one has for the moment in which it replaces another, or longer on file
// systems without files that have none: a process that is killed leaves it behind.
bool is_temporary_file(std::string_view name);

// Writes all of it to an open descriptor; returns false if that cannot be done, with the reason in errno.
bool try_write(int descriptor, std::string_view content) noexcept;

// Whether two paths lead to the same regular file, through any links, or will once there is one. "-" is standard input.
bool same_file(const std::string& a, const std::string& b);

}  // namespace doppler
