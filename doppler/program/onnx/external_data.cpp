#include "doppler/program/onnx/external_data.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/constant.h"

namespace doppler::program {

// A file in memory, as its pages are read.
class ExternalData::Mapping {
 public:
  Mapping(const std::filesystem::path& path, const std::string& what) {
    const auto refuse = [&](const char* problem) {
      throw InputError(
          fmt::format("{}: its data is in '{}': {}; required a file that can be read", what, path.string(), problem));
    };
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) refuse(std::strerror(errno));
    struct stat status {};
    const bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (regular) {
      size_ = static_cast<std::size_t>(status.st_size);
      if (size_ > 0) data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    const int error = errno;
    close(file);
    if (!regular) refuse("not a file");
    if (data_ == MAP_FAILED) refuse(std::strerror(error));
  }
  ~Mapping() {
    if (data_ != nullptr && data_ != MAP_FAILED) munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const char* data() const { return static_cast<const char*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace {

std::string entry(const onnx::TensorProto& tensor, std::string_view key) {
  for (const auto& pair : tensor.external_data())
    if (pair.key() == key) return pair.value();
  return {};
}

std::size_t number(const onnx::TensorProto& tensor, std::string_view key, std::size_t otherwise,
                   const std::string& what) {
  const std::string text = entry(tensor, key);
  if (text.empty()) return otherwise;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw InputError(fmt::format("{}: external data has {} '{}'; required a number of bytes", what, key, text));
  return value;
}

// Returns the path of the data. It may not leave the model's folder, by its name or through a link.
std::filesystem::path place_of(const std::filesystem::path& model, const std::string& location,
                               const std::string& what) {
  const auto refuse = [&] {
    throw InputError(
        fmt::format("{}: its data is in '{}'; required a file in the folder of the model", what, location));
  };
  const std::filesystem::path relative(location);
  if (location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos || model == "-") refuse();
  std::error_code failed;
  std::filesystem::path folder = model.parent_path();
  folder = std::filesystem::weakly_canonical(folder.empty() ? "." : folder, failed);
  if (failed) refuse();
  const std::filesystem::path path = std::filesystem::weakly_canonical(folder / relative, failed);
  if (failed) refuse();
  const std::filesystem::path inside = path.lexically_relative(folder);
  if (inside.empty() || inside == "." || *inside.begin() == "..") refuse();
  return path;
}

}  // namespace

model::Tensor ExternalData::read(const onnx::TensorProto& tensor, const std::string& what) {
  const std::filesystem::path path = place_of(model_, entry(tensor, "location"), what);
  const model::TensorType type{model::element_of(tensor.data_type(), what),
                               Shape(tensor.dims().begin(), tensor.dims().end())};
  check_data(tensor, what);
  const std::size_t needed = type.bytes(), offset = number(tensor, "offset", 0, what);
  const std::size_t length = number(tensor, "length", needed, what);
  if (length != needed)
    throw InputError(
        fmt::format("{}: shape and type claim {} bytes, external data {}; required as many", what, needed, length));
  std::shared_ptr<const Mapping>& file = files_[path];
  if (file == nullptr) file = std::make_shared<Mapping>(path, what);
  if (offset > file->size() || needed > file->size() - offset)
    throw InputError(fmt::format("{}: its data is bytes {} to {} of '{}', which has {}; required all of them", what,
                                 offset, offset + needed, path.string(), file->size()));
  return model::Tensor::view(type, file->data() + offset, file);
}

}  // namespace doppler::program
