#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "doppler/base/mapped_file.h"
#include "doppler/program/onnx/proto.h"
#include "doppler/program/onnx/tensor.h"

namespace doppler::program {

// The files beside a model that hold data of its tensors. Each is mapped once and stays mapped as long as a tensor of
// it lives.
class ExternalData {
 public:
  // `model` is the path of the model.
  explicit ExternalData(std::filesystem::path model) : model_(std::move(model)) {}

  // Throws InputError naming `what` if the file is missing, ends before the data does, or is not in the model's folder.
  model::Tensor read(const onnx::TensorProto& tensor, const std::string& what);
  // Returns the same as bytes, of any element type; they live as long as this.
  std::string_view bytes(const onnx::TensorProto& tensor, const std::string& what);

 private:
  struct Piece {
    std::shared_ptr<const MappedFile> file;
    std::string_view bytes;
  };
  Piece find(const onnx::TensorProto& tensor, std::size_t needed, const std::string& what);

  std::filesystem::path model_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace doppler::program
