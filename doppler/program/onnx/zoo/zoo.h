#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "doppler/program/expr/shape.h"

namespace doppler::program {

// The sizes of a model of the zoo. A model reads those that it has; 0 is its published size.
struct ZooSizes {
  Index batch = 1;
  Index image = 0;     // rows and columns of the pictures
  Index sequence = 0;  // tokens
  Index layers = 0, width = 0, heads = 0, hidden = 0, vocabulary = 0;
  // Keeps batch normalisations as nodes, with all four vectors, instead of having them in the convolutions before them.
  bool batch_norm = false;
  // The seed of drawn weights, which the file then has; without it they are inputs of the graph.
  std::optional<std::uint64_t> weights = {};
};

// A published architecture that can be written as an ONNX model.
struct ZooModel {
  std::string_view name, summary;
  // Which sizes it reads, beside the batch.
  bool has_image, has_convolutions, has_tokens, is_transformer;
  std::string (*make)(const ZooSizes& sizes);
};

// Every model of the zoo: networks of pictures and of text, with the names that PyTorch gives to modules, nodes and
// parameters. The files are valid ONNX (IR 8, opset 17) and say what users would export, so that examples, tests and
// studies need no file from elsewhere. Throws InputError where sizes do not fit, or weights would not fit in one file.
std::span<const ZooModel> zoo();

}  // namespace doppler::program
