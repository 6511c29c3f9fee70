#pragma once

#include "doppler/kernels/onnx/kernel.h"
#include "doppler/program/onnx/runnable_model.h"

namespace doppler::model {

// How the tensors of a model lie in memory while it runs. A tensor has the layout of the op that writes it, and an op
// that wants another one reorders what it reads; nodes that only look at a tensor under another shape need it row-major.
struct LayoutPlan {
  std::vector<Layout> of_value;                // by value; row-major for what no op writes
  std::vector<std::vector<Layout>> of_inputs;  // by op and input: what its kernel wants

  std::size_t reorders = 0;  // inputs that are reordered in every run
};

// Chooses layouts op by op, producers first; without `blocked`, none in which the rows of a tensor lie apart: of those that a kernel can have, the one for which the fewest bytes are
// reordered, and a convolution or pool never row-major if it can have another.
LayoutPlan plan_layouts(const RunnableModel& model, const std::vector<std::uint32_t>& order,
                        const std::vector<KernelNode>& nodes, const KernelLibrary& library, bool blocked = true);

// Says whether the tensor has the same bytes in both layouts.
bool same_bytes(const TensorType& type, Layout a, Layout b);

}  // namespace doppler::model
