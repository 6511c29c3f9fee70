#pragma once

#include "doppler/kernels/onnx/making.h"

// Reductions, and operators that normalise along an axis.

namespace doppler::model {

enum class Reduction : std::uint8_t { sum, mean, max, min, product, l1, l2, log_sum, log_sum_exp, sum_square };
std::unique_ptr<NodeKernel> make_reduction(const Spec& spec, Reduction reduction);
template <Reduction R>
std::unique_ptr<NodeKernel> reduction(const Spec& spec, PackedWeights*) {
  return make_reduction(spec, R);
}
// GlobalAveragePool and GlobalMaxPool reduce space.
std::unique_ptr<NodeKernel> make_global_pool(const Spec& spec, PackedWeights*);
std::vector<LayoutChoice> global_pool_layouts(const Spec& spec);

std::unique_ptr<NodeKernel> make_cumulative_sum(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_softmax(const Spec& spec, PackedWeights*);  // and LogSoftmax, Hardmax
std::unique_ptr<NodeKernel> make_layer_norm(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_skip_layer_norm(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_rms_norm(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_batch_norm(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_instance_norm(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_group_norm(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_mean_variance(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_lrn(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_lp_norm(const Spec& spec, PackedWeights*);
std::vector<LayoutChoice> batch_norm_layouts(const Spec& spec);

}  // namespace doppler::model
