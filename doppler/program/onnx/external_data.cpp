#include "doppler/program/onnx/external_data.h"

#include <charconv>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/constant.h"

namespace doppler::program {

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

ExternalData::Piece ExternalData::find(const onnx::TensorProto& tensor, std::size_t needed, const std::string& what) {
  const std::filesystem::path path = place_of(model_, entry(tensor, "location"), what);
  check_data(tensor, what);
  const std::size_t offset = number(tensor, "offset", 0, what), length = number(tensor, "length", needed, what);
  if (length != needed)
    throw InputError(
        fmt::format("{}: shape and type claim {} bytes, external data {}; required as many", what, needed, length));
  std::shared_ptr<const MappedFile>& file = files_[path];
  if (file == nullptr)
    file = std::make_shared<MappedFile>(path.string(), fmt::format("{}: its data is in '{}'", what, path.string()));
  const std::string_view content = file->content();
  if (offset > content.size() || needed > content.size() - offset)
    throw InputError(fmt::format("{}: its data is bytes {} to {} of '{}', which has {}; required all of them", what,
                                 offset, offset + needed, path.string(), content.size()));
  return {file, content.substr(offset, needed)};
}

model::Tensor ExternalData::read(const onnx::TensorProto& tensor, const std::string& what) {
  const model::TensorType type{model::element_of(tensor.data_type(), what),
                               Shape(tensor.dims().begin(), tensor.dims().end())};
  const Piece piece = find(tensor, type.bytes(), what);
  return model::Tensor::view(type, piece.bytes.data(), piece.file);
}

std::string_view ExternalData::bytes(const onnx::TensorProto& tensor, const std::string& what) {
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  return find(tensor, bytes_of(tensor.data_type(), element_count(shape, what)), what).bytes;
}

}  // namespace doppler::program
