#pragma once

#include <deque>

#include "doppler/kernels/onnx/kernel.h"
#include "doppler/program/onnx/runnable_model.h"

namespace doppler::model {

// A node that computes a block, and where its inputs come from.
struct BlockNode {
  struct Input {
    std::size_t slot = 0;  // of the op
    program::Rect region;
  };
  KernelNode node;
  std::vector<std::optional<Input>> inputs;  // by input of the node; none where it is absent or a constant of its own
};

// Returns the node of a block of an op, given the node of the whole op. Types and constants of inputs are still those of
// the whole tensors. `made` keeps constants that the block has for itself. program/onnx/cut_for_kernels.cpp says what is
// cut; a block of anything else computes something else.
BlockNode block_node(KernelNode node, const RunnableModel::Block& block, const Shape& out, std::deque<Tensor>& made);

}  // namespace doppler::model
