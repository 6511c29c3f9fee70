#include "doppler/watch/line_tail.h"

#include <filesystem>

namespace doppler {

std::vector<std::string> LineTail::next() {
  constexpr std::size_t kMost = 1 << 20;  // at once: a page that was opened late gets a long file in parts
  std::vector<std::string> lines;
  std::error_code none;
  const std::uint64_t size = std::filesystem::file_size(path_, none);
  if (none || size == read_) return lines;
  if (size < read_) {
    read_ = 0;
    half_.clear();
  }
  std::ifstream file(path_, std::ios::binary);
  if (!file.seekg(static_cast<std::streamoff>(read_))) return lines;
  std::string text(std::min<std::uint64_t>(kMost, size - read_), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  read_ += text.size();
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      half_ += text.substr(begin);
      return lines;
    }
    lines.push_back(half_ + text.substr(begin, end - begin));
    half_.clear();
    begin = end + 1;
  }
}

}  // namespace doppler
