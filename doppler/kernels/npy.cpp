#include "doppler/kernels/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/kernels/loop_nest.h"

namespace doppler {

using program::DType;
using program::Index;
using program::Shape;

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // the format aligns the data in the file so

struct Descriptor {
  std::string_view text;
  DType dtype;
};
constexpr Descriptor kDescriptors[] = {
    {"<f4", DType::f32}, {"<f8", DType::f64}, {"<c8", DType::c64}, {"<c16", DType::c128}};

// The header is a Python dictionary with three known keys.
class HeaderReader {
 public:
  HeaderReader(const std::string& where, std::string_view text, Index smallest)
      : where_(where), text_(text), smallest_(smallest) {}

  struct Header {
    std::optional<std::string_view> descriptor;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
  };

  Header read() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !header.descriptor)
        header.descriptor = quoted();
      else if (key == "fortran_order" && !header.fortran_order)
        header.fortran_order = boolean();
      else if (key == "shape" && !header.shape)
        header.shape = shape();
      else
        refuse("another key", "'descr', 'fortran_order' and 'shape', once each");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!text_.empty()) refuse("more after the dictionary", "its end");
    if (!header.descriptor || !header.fortran_order || !header.shape)
      refuse("a key missing", "'descr', 'fortran_order' and 'shape'");
    return header;
  }

 private:
  [[noreturn]] void refuse(std::string_view found, std::string_view required) const {
    throw InputError(fmt::format("{}: npy header: found {}; required {}", where_, found, required));
  }

  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }
  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse("another character", fmt::format("'{}'", c));
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::string_view quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) refuse("a string without end", "a closing quote");
    const std::string_view result = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return result;
  }

  bool boolean() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) refuse("no truth value", "True or False");
    return false;
  }

  Shape shape() {
    Shape result;
    Index total = 1;
    expect('(');
    while (!accept(')')) {
      skip_space();
      Index size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < smallest_)
        refuse("a size that is none", fmt::format("whole numbers from {} on", smallest_));
      if (size > program::kMostElements / total) refuse("a shape of too many elements", "fewer");
      total *= std::max<Index>(size, 1);
      result.push_back(size);
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  const std::string& where_;
  std::string_view text_;
  Index smallest_;
};

std::size_t little_endian(std::string_view bytes) {
  std::size_t result = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) result = result << 8 | static_cast<unsigned char>(bytes[i]);
  return result;
}

}  // namespace

NpyContent parse_npy_content(const std::string& where, std::string_view content, Index smallest) {
  const auto refuse = [&](const std::string& found, const std::string& required) {
    throw InputError(fmt::format("{}: {}; required {}", where, found, required));
  };
  constexpr std::size_t kVersionBytes = 2;
  const std::size_t start = kMagic.size() + kVersionBytes;
  if (!content.starts_with(kMagic) || content.size() < start) refuse("not an array file", "NumPy's .npy");
  const int version = static_cast<unsigned char>(content[kMagic.size()]);
  if ((version != 1 && version != 2) || content[kMagic.size() + 1] != 0)
    refuse(fmt::format("npy version {}.{}", version, static_cast<int>(content[kMagic.size() + 1])), "1.0 or 2.0");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t length = little_endian(content.substr(start, length_bytes));
  if (content.size() < start + length_bytes || content.size() - start - length_bytes < length)
    refuse("the file ends within its header", "all of it");
  const auto header = HeaderReader(where, content.substr(start + length_bytes, length), smallest).read();
  return {*header.descriptor, *header.fortran_order, *header.shape, content.substr(start + length_bytes + length)};
}

void check_npy_data(const std::string& where, const NpyContent& npy, std::size_t element_bytes) {
  const auto elements = static_cast<std::size_t>(program::product(npy.shape));
  if (npy.data.size() % element_bytes != 0 || npy.data.size() / element_bytes != elements)
    throw InputError(fmt::format("{}: {} bytes of data for shape {}; required {} elements of {} bytes", where,
                                 npy.data.size(), program::to_string(npy.shape), elements, element_bytes));
}

void copy_npy_data(const NpyContent& npy, std::size_t element_bytes, std::byte* to) {
  const auto elements = static_cast<std::size_t>(program::product(npy.shape));
  if (elements == 0) return;
  if (!npy.fortran_order) {
    std::memcpy(to, npy.data.data(), npy.data.size());
    return;
  }
  // The first index is fastest there.
  const std::vector<Index> steps = row_major_steps(npy.shape);
  std::vector<Index> index(npy.shape.size(), 0);
  for (std::size_t k = 0; k < elements; ++k) {
    Index at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * steps[i];
    std::memcpy(to + static_cast<std::size_t>(at) * element_bytes, npy.data.data() + k * element_bytes, element_bytes);
    for (std::size_t i = 0; i < index.size() && ++index[i] == npy.shape[i]; ++i) index[i] = 0;
  }
}

std::string make_npy(std::string_view descriptor, const Shape& shape, std::string_view data) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descriptor,
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t fixed = kMagic.size() + 4;  // the version and the length
  header.append(kAlignment - (fixed + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string result(kMagic);
  result += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  result += header;
  result += data;
  return result;
}

Array parse_npy(const std::string& where, std::string_view content) {
  const NpyContent npy = parse_npy_content(where, content, 1);
  const auto known = std::find_if(std::begin(kDescriptors), std::end(kDescriptors),
                                  [&](const Descriptor& d) { return d.text == npy.descriptor; });
  if (known == std::end(kDescriptors))
    throw InputError(
        fmt::format("{}: npy header: found another element type; required '<f4', '<f8', '<c8' or '<c16'", where));
  check_npy_data(where, npy, size_of(known->dtype));
  Array array(known->dtype, npy.shape);
  copy_npy_data(npy, size_of(known->dtype), array.bytes.data());
  return array;
}

std::string to_npy(const Array& array) {
  const auto descriptor = std::find_if(std::begin(kDescriptors), std::end(kDescriptors),
                                       [&](const Descriptor& d) { return d.dtype == array.dtype; });
  DOPPLER_CHECK(descriptor != std::end(kDescriptors), "found {}", to_string(array.dtype));
  return make_npy(descriptor->text, array.shape,
                  {reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()});
}

}  // namespace doppler
