#pragma once

#include <vector>

#include "doppler/program/onnx/import.h"
#include "doppler/program/onnx/reading.h"

namespace doppler::program {

struct Rewritten {
  std::vector<RewriteCount> passes;
  std::vector<int> place;  // by node of the main graph as it was: the node that does its work now; -1 if none does
};

// Rewrites the main graph of the model that was read, in place: the reading counts no more, and the model has to be
// read anew. What it computes stays the same but for rounding.
Rewritten rewrite(Reading& reading);

}  // namespace doppler::program
