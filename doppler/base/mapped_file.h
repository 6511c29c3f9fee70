#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace doppler {

// A file in memory, whose pages are read when they are looked at. It must not shrink meanwhile.
class MappedFile {
 public:
  // Throws InputError, whose text starts with `where`, if it is no file that can be read.
  MappedFile(const std::string& path, const std::string& where);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view content() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Gives the memory of whole pages of a mapped file back. Whoever looks at them again has them read again.
void forget_pages(const void* begin, std::size_t bytes);

}  // namespace doppler
