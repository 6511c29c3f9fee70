#pragma once

#include "doppler/program/expr/workloads.h"

namespace doppler::program {

// Small enough for the dense reference; every size is different where it can be.
inline LlamaOptions tiny_llama() {
  LlamaOptions options;
  options.width = 8;
  options.heads = 2;
  options.hidden = 6;
  options.vocabulary = 5;
  options.sequence = 3;
  return options;
}

}  // namespace doppler::program
