#include "doppler/program/onnx/zoo/zoo.h"

#include "doppler/program/onnx/zoo/transformers.h"
#include "doppler/program/onnx/zoo/vision.h"

namespace doppler::program {

std::span<const ZooModel> zoo() {
  static constexpr ZooModel kModels[] = {
      {"resnet50", "ResNet-50 of 224 x 224 pictures, as an ONNX model", true, true, false, false, resnet50},
      {"inception-v3", "Inception-V3 of 299 x 299 pictures, as an ONNX model", true, true, false, false, inception_v3},
      {"mobilenet-v3", "MobileNet-V3 (large) of 224 x 224 pictures, as an ONNX model", true, true, false, false,
       mobilenet_v3},
      {"vit-b16", "ViT-B/16 of 224 x 224 pictures, as an ONNX model", true, false, false, true, vit_b16},
      {"bert-base", "BERT-base of 128 tokens, as an ONNX model", false, false, true, true, bert_base},
      {"llama-decoder", "LLaMA-7B reading 512 tokens, as an ONNX model", false, false, true, true, llama_decoder},
  };
  return kModels;
}

}  // namespace doppler::program
