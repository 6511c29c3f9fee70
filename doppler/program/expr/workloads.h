#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "doppler/program/expr/program.h"
#include "doppler/program/lower/lower.h"

namespace doppler::program {

// The computations of the published experiments, with every size open. Defaults are the published sizes.

// A chain of square matrix products.
struct ChainOptions {
  enum class Association : std::uint8_t { published, left, balanced, random };
  Association association = Association::published;  // C·(D·E) + A·B; the others multiply `matrices` in a row
  Index size = 10'000;
  Index matrices = 5;
  std::uint64_t seed = 0;  // of `random`
  DType dtype = DType::f32;
};
ChainOptions::Association parse_association(std::string_view text);  // throws InputError
void chain_of_products(Program& program, const ChainOptions& options = {});

// softmax(… relu(x·w1) … ·wn)
struct FfnnOptions {
  Index batch = 32'768, input = 32, hidden = 65'536, output = 32;
  Index layers = 2;
  bool train = false;  // cross entropy against targets instead of a softmax; the loss is the program's only output
  DType dtype = DType::f32;
};
void feed_forward(Program& program, const FfnnOptions& options = {});

// LLaMA (Touvron et al. 2023), norms and softmax in f32 at least.
struct LlamaOptions {
  Index width = 4096, heads = 32, hidden = 11'008, vocabulary = 32'000;
  Index layers = 1;
  Index batch = 1, sequence = 4096;
  enum class Part : std::uint8_t {
    block,  // one block alone: no mask, no head
    model,  // mask, `layers` blocks, final norm, and the logits of the last token
  };
  Part part = Part::model;
  bool decode = false;       // one new token against a cache of `sequence` tokens
  bool train = false;        // logits of all tokens, cross entropy; the loss is the program's only output
  DType dtype = DType::f16;  // of activations and weights; f16, f32 or f64
};
// Sizes of "7b", "13b", "30b" or "65b", all layers. Throws InputError.
LlamaOptions llama_model(std::string_view name);
void llama(Program& program, const LlamaOptions& options = {});

// The boxes of the published graphs: chainmm and ffnn at 16 parts, llama at 4 and 8 parts (block and model;
// any sizes and layers). Throws InputError for other parts.
enum class Family : std::uint8_t { chain, ffnn, llama_block, llama_model };
Plan published_plan(const Program& program, Family family, Index parts);

}  // namespace doppler::program
