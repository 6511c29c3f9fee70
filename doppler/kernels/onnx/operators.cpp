#include "doppler/kernels/onnx/operators.h"

#include <algorithm>
#include <array>

#include "doppler/kernels/onnx/creation.h"
#include "doppler/kernels/onnx/elementwise.h"
#include "doppler/kernels/onnx/indexing.h"
#include "doppler/kernels/onnx/matmul.h"
#include "doppler/kernels/onnx/movement.h"
#include "doppler/kernels/onnx/reduce.h"
#include "doppler/kernels/onnx/special.h"
#include "doppler/kernels/onnx/window.h"

namespace doppler::model {
namespace {

constexpr Accepts any = Accepts::anything, wide = Accepts::wide, numbers = Accepts::wide_or_u64;

// The table of operators that have kernels. Columns: name, maker, element types that it computes in, inputs whose
// values give shapes (as bits), layouts, outputs of the first input's type (as bits).
const KernelRow kRows[] = {
    // Elementwise
    {"Abs", unary<Unary::abs>, numbers, 0, elementwise_layouts},
    {"Neg", unary<Unary::neg>, numbers, 0, elementwise_layouts},
    {"Floor", unary<Unary::floor>, wide, 0, elementwise_layouts},
    {"Ceil", unary<Unary::ceil>, wide, 0, elementwise_layouts},
    {"Round", unary<Unary::round>, wide, 0, elementwise_layouts},
    {"Sqrt", unary<Unary::sqrt>, wide, 0, elementwise_layouts},
    {"Reciprocal", unary<Unary::reciprocal>, wide, 0, elementwise_layouts},
    {"Exp", unary<Unary::exp>, wide, 0, elementwise_layouts},
    {"Log", unary<Unary::log>, wide, 0, elementwise_layouts},
    {"Sin", unary<Unary::sin>, wide, 0, elementwise_layouts},
    {"Cos", unary<Unary::cos>, wide, 0, elementwise_layouts},
    {"Tan", unary<Unary::tan>, wide, 0, elementwise_layouts},
    {"Asin", unary<Unary::asin>, wide, 0, elementwise_layouts},
    {"Acos", unary<Unary::acos>, wide, 0, elementwise_layouts},
    {"Atan", unary<Unary::atan>, wide, 0, elementwise_layouts},
    {"Sinh", unary<Unary::sinh>, wide, 0, elementwise_layouts},
    {"Cosh", unary<Unary::cosh>, wide, 0, elementwise_layouts},
    {"Tanh", unary<Unary::tanh>, wide, 0, elementwise_layouts},
    {"Asinh", unary<Unary::asinh>, wide, 0, elementwise_layouts},
    {"Acosh", unary<Unary::acosh>, wide, 0, elementwise_layouts},
    {"Atanh", unary<Unary::atanh>, wide, 0, elementwise_layouts},
    {"Erf", unary<Unary::erf>, wide, 0, elementwise_layouts},
    {"Sign", unary<Unary::sign>, numbers, 0, elementwise_layouts},
    {"Relu", unary<Unary::relu>, wide, 0, elementwise_layouts},
    {"Sigmoid", unary<Unary::sigmoid>, wide, 0, elementwise_layouts},
    {"Softplus", unary<Unary::softplus>, wide, 0, elementwise_layouts},
    {"Softsign", unary<Unary::softsign>, wide, 0, elementwise_layouts},
    {"Elu", unary<Unary::elu>, wide, 0, elementwise_layouts},
    {"Selu", unary<Unary::selu>, wide, 0, elementwise_layouts},
    {"Celu", unary<Unary::celu>, wide, 0, elementwise_layouts},
    {"LeakyRelu", unary<Unary::leaky_relu>, wide, 0, elementwise_layouts},
    {"ThresholdedRelu", unary<Unary::thresholded_relu>, wide, 0, elementwise_layouts},
    {"HardSigmoid", unary<Unary::hard_sigmoid>, wide, 0, elementwise_layouts},
    {"HardSwish", unary<Unary::hard_swish>, wide, 0, elementwise_layouts},
    {"Shrink", unary<Unary::shrink>, wide, 0, elementwise_layouts},
    {"Mish", unary<Unary::mish>, wide, 0, elementwise_layouts},
    {"Gelu", make_gelu, wide, 0, elementwise_layouts},
    {"doppler.Gelu", make_gelu, wide, 0, elementwise_layouts},
    {"com.microsoft.Gelu", unary<Unary::gelu>, wide, 0, elementwise_layouts},
    {"com.microsoft.FastGelu", make_bias_gelu},
    {"com.microsoft.BiasGelu", make_bias_gelu},
    {"doppler.Silu", unary<Unary::silu>, wide, 0, elementwise_layouts},
    {"com.microsoft.QuickGelu", make_quick_gelu, wide, 0, elementwise_layouts},
    {"Clip", make_clip, numbers, 0, elementwise_layouts},
    {"IsNaN", make_is_nan},
    {"IsInf", make_is_inf},
    {"Add", binary<Binary::add>, numbers, 0, elementwise_layouts},
    {"Sub", binary<Binary::sub>, numbers, 0, elementwise_layouts},
    {"Mul", binary<Binary::mul>, numbers, 0, elementwise_layouts},
    {"Div", binary<Binary::div>, numbers, 0, elementwise_layouts},
    {"PRelu", binary<Binary::prelu>, numbers, 0, elementwise_layouts},
    {"Pow", make_pow, numbers},
    {"Mod", make_mod, numbers},
    {"Sum", variadic<Binary::add>, numbers, 0, elementwise_layouts},
    {"Mean", variadic<Binary::add, true>, numbers, 0, elementwise_layouts},
    {"Max", variadic<Binary::max>, numbers, 0, elementwise_layouts},
    {"Min", variadic<Binary::min>, numbers, 0, elementwise_layouts},
    {"Equal", comparison<Comparison::equal>, numbers, 0, nullptr, 0},
    {"Less", comparison<Comparison::less>, numbers, 0, nullptr, 0},
    {"LessOrEqual", comparison<Comparison::less_or_equal>, numbers, 0, nullptr, 0},
    {"Greater", comparison<Comparison::greater>, numbers, 0, nullptr, 0},
    {"GreaterOrEqual", comparison<Comparison::greater_or_equal>, numbers, 0, nullptr, 0},
    {"And", logic<Logic::logical_and>, any},
    {"Or", logic<Logic::logical_or>, any},
    {"Xor", logic<Logic::logical_xor>, any},
    {"BitwiseAnd", logic<Logic::bit_and>, numbers},
    {"BitwiseOr", logic<Logic::bit_or>, numbers},
    {"BitwiseXor", logic<Logic::bit_xor>, numbers},
    {"BitShift", logic<Logic::shift>, numbers},
    {"Not", make_not, any},
    {"BitwiseNot", make_bitwise_not, numbers},
    {"Where", make_where, any},
    {"Cast", make_cast, any, 0, elementwise_layouts},
    {"CastLike", make_cast, any},

    // Views, movement and creation
    {"Identity", make_identity, any, 0, identity_layouts},
    {"Reshape", make_reshape, any, 1U << 1},
    {"Flatten", make_flatten, any},
    {"Squeeze", make_squeeze, any, 1U << 1},
    {"Unsqueeze", make_unsqueeze, any, 1U << 1},
    {"Dropout", make_dropout, any, 1U << 1 | 1U << 2},
    {"Transpose", make_transpose, any},
    {"Slice", make_slice, any, ~1U},
    {"Expand", make_expand, any, 1U << 1},
    {"Tile", make_tile, any, ~1U},
    {"Concat", make_concat, any, 0, concat_layouts},
    {"Split", make_split, any, 1U << 1},
    {"Pad", make_pad, any, 1U << 1 | 1U << 3},
    {"DepthToSpace", make_depth_to_space, any},
    {"SpaceToDepth", make_space_to_depth, any},
    {"doppler.Reorder", make_reorder, any},
    {"Constant", make_constant, any},
    {"Shape", make_shape, any},
    {"Size", make_size, any},
    {"ConstantOfShape", make_constant_of_shape, any, 1},
    {"Range", make_range, wide, 7},
    {"EyeLike", make_eye_like, any},
    {"Trilu", make_trilu, any},

    // Indices
    {"Gather", make_gather, any},
    {"GatherElements", make_gather_elements, any},
    {"GatherND", make_gather_nd, any},
    {"Scatter", make_scatter_elements, any},
    {"ScatterElements", make_scatter_elements, any},
    {"ScatterND", make_scatter_nd, any},
    {"OneHot", make_one_hot, any, 1U << 1},
    {"Compress", make_compress, any, 1U << 1},
    {"ReverseSequence", make_reverse_sequence, any},
    {"NonZero", make_non_zero, wide, 1, nullptr, 0},
    {"Unique", make_unique_elements, wide, 1},
    {"TopK", make_top_k, wide, 1U << 1},
    {"ArgMax", make_arg_max, wide, 0, nullptr, 0},
    {"ArgMin", make_arg_max, wide, 0, nullptr, 0},

    // Reductions and normalisations
    {"ReduceSum", reduction<Reduction::sum>, wide, 1U << 1},
    {"ReduceMean", reduction<Reduction::mean>, wide, 1U << 1},
    {"ReduceMax", reduction<Reduction::max>, wide, 1U << 1},
    {"ReduceMin", reduction<Reduction::min>, wide, 1U << 1},
    {"ReduceProd", reduction<Reduction::product>, wide, 1U << 1},
    {"ReduceL1", reduction<Reduction::l1>, wide, 1U << 1},
    {"ReduceL2", reduction<Reduction::l2>, wide, 1U << 1},
    {"ReduceLogSum", reduction<Reduction::log_sum>, wide, 1U << 1},
    {"ReduceLogSumExp", reduction<Reduction::log_sum_exp>, wide, 1U << 1},
    {"ReduceSumSquare", reduction<Reduction::sum_square>, wide, 1U << 1},
    {"GlobalAveragePool", make_global_pool, wide, 0, global_pool_layouts},
    {"GlobalMaxPool", make_global_pool, wide, 0, global_pool_layouts},
    {"CumSum", make_cumulative_sum, wide, 1U << 1},
    {"Softmax", make_softmax},
    {"LogSoftmax", make_softmax},
    {"Hardmax", make_softmax},
    {"LayerNormalization", make_layer_norm, wide, 0, nullptr, 7},
    {"doppler.SkipLayerNormalization", make_skip_layer_norm, wide, 0, nullptr, 3},
    {"com.microsoft.SkipLayerNormalization", make_skip_layer_norm, wide, 0, nullptr, 9},
    {"com.microsoft.SkipSimplifiedLayerNormalization", make_skip_layer_norm, wide, 0, nullptr, 9},
    {"com.microsoft.LayerNormalization", make_layer_norm, wide, 0, nullptr, 7},
    {"RMSNormalization", make_rms_norm},
    {"SimplifiedLayerNormalization", make_rms_norm},
    {"com.microsoft.SimplifiedLayerNormalization", make_rms_norm},
    {"BatchNormalization", make_batch_norm, wide, 0, batch_norm_layouts, 7},
    {"InstanceNormalization", make_instance_norm},
    {"GroupNormalization", make_group_norm},
    {"MeanVarianceNormalization", make_mean_variance},
    {"LRN", make_lrn},
    {"LpNormalization", make_lp_norm},

    // Products, convolutions and pools
    {"MatMul", make_matmul},
    {"Gemm", make_gemm},
    {"com.microsoft.FusedGemm", make_gemm},
    {"doppler.MatMul", make_fused_matmul},
    {"com.microsoft.FusedMatMul", make_fused_matmul},
    {"Einsum", make_einsum},
    {"doppler.Attention", make_attention},
    {"com.microsoft.Attention", make_packed_attention, any},
    {"Conv", make_conv, wide, 0, conv_layouts},
    {"doppler.Conv", make_conv, wide, 0, conv_layouts},
    {"com.microsoft.FusedConv", make_conv, wide, 0, conv_layouts},
    {"ConvTranspose", make_conv_transpose},
    {"MaxPool", make_pool, wide, 0, pool_layouts},
    {"AveragePool", make_pool, wide, 0, pool_layouts},
    {"LpPool", make_pool},
    {"GlobalLpPool", make_global_lp_pool},
    {"MaxUnpool", make_max_unpool, wide, 1U << 2},
    {"Det", make_det},

    // Recurrent cells
    {"RNN", make_recurrent, wide, 0, nullptr, 3},
    {"GRU", make_recurrent, wide, 0, nullptr, 3},
    {"LSTM", make_recurrent, wide, 0, nullptr, 7},

    // Quantisation
    {"QuantizeLinear", make_quantize, any},
    {"DequantizeLinear", make_dequantize, any},
    {"com.microsoft.QuantizeLinear", make_quantize, any},
    {"com.microsoft.DequantizeLinear", make_dequantize, any},
    {"DynamicQuantizeLinear", make_dynamic_quantize, any},
    {"MatMulInteger", make_integer_product, any},
    {"ConvInteger", make_integer_product, any},
    {"QLinearMatMul", make_quantized_product, any},
    {"QLinearConv", make_quantized_product, any},

    // Images, signals and losses
    {"Resize", make_resize, wide, ~1U},
    {"Upsample", make_resize, wide, ~1U},
    {"GridSample", make_grid_sample},
    {"RoiAlign", make_roi_align},
    {"NonMaxSuppression", make_non_max_suppression, any, ~0U},
    {"DFT", make_dft, wide, 1U << 1},
    {"STFT", make_stft, wide, ~1U},
    {"HannWindow", make_window, any, 1},
    {"HammingWindow", make_window, any, 1},
    {"BlackmanWindow", make_window, any, 1},
    {"MelWeightMatrix", make_mel_weights, any, ~0U},
    {"NegativeLogLikelihoodLoss", make_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", make_cross_entropy_loss, wide, 0, nullptr, 3},
    {"TfIdfVectorizer", make_tf_idf},
};

}  // namespace

const KernelRow* find_kernel_row(const std::string& domain, const std::string& op_type) {
  const std::string name = domain.empty() ? op_type : domain + "." + op_type;
  for (const KernelRow& row : kRows)
    if (row.name == name) return &row;
  return nullptr;
}

std::vector<std::string> kernel_row_names() {
  std::vector<std::string> names;
  for (const KernelRow& row : kRows) names.emplace_back(row.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace doppler::model
