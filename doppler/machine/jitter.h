#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "doppler/graph.h"
#include "doppler/jitter.h"

namespace doppler {

// Throws InputError unless every sigma is between 0 and kMostJitter, kinds differ, and the tail is within its limits.
// `where` starts the text.
void check_jitter(const std::string& where, const Jitter& jitter);

// One outcome of times that vary: a factor with mean 1 for every op and every transfer. The factor of one depends on
// nothing else, so that draws are the same in any order and at any number of threads.
struct JitterDraw {
  Jitter jitter = {};  // none: every factor is 1
  std::uint64_t seed = 0;

  // Returns one of many draws that follow from a seed; other streams are other draws.
  static JitterDraw number(std::size_t draw, Jitter jitter, std::uint64_t seed, std::uint64_t stream);

  double op_factor(const Graph& graph, OpId op) const;
  // `index` is the tensor's, or whatever tells one transfer from another.
  double transfer_factor(std::uint64_t index) const;
};

}  // namespace doppler
