#pragma once

#include <string>

#include "doppler/program/onnx/zoo/zoo.h"

// Transformers of pictures and text. Internal to the zoo.
namespace doppler::program {

std::string vit_b16(const ZooSizes& sizes);        // Dosovitskiy et al., 2021
std::string bert_base(const ZooSizes& sizes);      // Devlin et al., 2019, without a mask: all tokens are there
std::string llama_decoder(const ZooSizes& sizes);  // Touvron et al., 2023: the whole prompt at once

}  // namespace doppler::program
