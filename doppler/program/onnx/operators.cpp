#include "doppler/program/onnx/operators.h"

#include <unordered_map>

#include "doppler/program/onnx/cost_rules.h"
#include "doppler/program/onnx/cut_rules.h"
#include "doppler/program/onnx/fold_rules.h"
#include "doppler/program/onnx/shape_rules.h"

namespace doppler::program {
namespace {

using enum OperatorClass;
using Offer = WeightSlots::Offer;

constexpr std::nullptr_t none = nullptr;  // no rule

constexpr WeightSlots slots(std::initializer_list<unsigned> listed, Offer offer = Offer::anything) {
  WeightSlots result{0, offer};
  for (const unsigned slot : listed) result.slots |= 1U << slot;
  return result;
}
constexpr WeightSlots kVector = slots({0, 1}, Offer::vector_beside_data);

// Outside training a dropout is the identity, unless somebody asks for its mask.
bool is_idle_dropout(const onnx::NodeProto& node, const onnx::TypeProto&) {
  return node.output_size() < 2 || node.output(1).empty();
}
bool is_idle_cast(const onnx::NodeProto& node, const onnx::TypeProto& input) {
  return int_attribute(node, "to", 0) == element_of(input);
}

// A row is a line, or two where it is long; the columns are name, class, shape, cost, cut, fold, traits.
// clang-format off
constexpr Operator kOperators[] = {
    // Products.
    {"MatMul", product, none, costs::matmul, cuts::product<1>, none,
     {.einsum = AsEinsum::product, .weights = slots({1}, Offer::at_most_matrix)}},
    {"MatMulInteger", product, none, costs::matmul, cuts::product<1>, none, {.weights = slots({1, 2, 3})}},
    {"QLinearMatMul", product, none, costs::matmul, cuts::product<3>, none, {.weights = slots({1, 2, 3, 4, 5, 6, 7})}},
    {"Gemm", product, none, costs::gemm, cuts::gemm, none, {.einsum = AsEinsum::product_and_bias, .weights = slots({1, 2})}},
    {"Einsum", product, shapes::equation, costs::einsum, none, none,
     {.einsum = AsEinsum::equation, .shape_first = true}},
    {"com.microsoft.FusedMatMul", product, shapes::transposed_product, costs::transposed_matmul, cuts::fused_product, none,
     {.einsum = AsEinsum::product}},
    {"com.microsoft.FusedGemm", product, shapes::transposed_product, costs::gemm, cuts::gemm},
    {"com.microsoft.MatMulNBits", product, shapes::packed_product, costs::matmul},
    {"com.microsoft.DynamicQuantizeMatMul", product, shapes::product, costs::matmul, none, none,
     {.gives_floats = true}},
    {"com.microsoft.MatMulIntegerToFloat", product, shapes::product, costs::matmul, none, none, {.gives_floats = true}},
    // Convolutions.
    {"Conv", convolution, none, costs::conv<1, 2>, cuts::conv<1, 2>, none, {.weights = slots({1, 2})}},
    {"ConvInteger", convolution, none, costs::conv<1>, cuts::conv<1>, none, {.weights = slots({1, 2, 3})}},
    {"QLinearConv", convolution, none, costs::conv<3, 8>, cuts::conv<3, 8>, none,
     {.weights = slots({1, 2, 3, 4, 5, 6, 7, 8})}},
    {"ConvTranspose", convolution, none, costs::conv_transpose, cuts::conv_transpose, none, {.weights = slots({1, 2})}},
    {"DeformConv", convolution, none, costs::conv<1, 2>},
    {"com.microsoft.FusedConv", convolution, none, costs::conv<1, 2>, cuts::conv<1, 2>, none,
     {.standard = {"Conv", 3, "activation"}}},
    // Fused forms that rewrites make (rewrite/rewrite.h).
    {"doppler.Conv", convolution, none, costs::fused_conv, cuts::conv<1, 2>, none,
     {.weights = slots({1, 2}), .standard = {"Conv", 3, "activation"}}},
    {"doppler.MatMul", product, shapes::transposed_product, costs::fused_matmul, cuts::fused_product, none,
     {.weights = slots({1, 2})}},
    {"doppler.Attention", attention, shapes::permuted_attention, costs::permuted_attention,
     cuts::permuted_attention},
    {"doppler.Gelu", elementwise, shapes::as_first, costs::per_output<5>, cuts::elementwise},
    {"doppler.Silu", elementwise, shapes::as_first, costs::per_output<4>, cuts::elementwise},
    // Recurrent cells and attention.
    {"LSTM", recurrent, none, costs::lstm, none, none, {.weights = slots({1, 2, 3, 7})}},
    {"com.microsoft.DynamicQuantizeLSTM", recurrent, none, costs::lstm, none, none, {.standard = {"LSTM", 8, {}}}},
    {"GRU", recurrent, none, costs::gru, none, none, {.weights = slots({1, 2, 3})}},
    {"RNN", recurrent, none, costs::rnn, none, none, {.weights = slots({1, 2, 3})}},
    {"Attention", attention, shapes::as_first, costs::attention},
    {"com.microsoft.MultiHeadAttention", attention, shapes::as_first, costs::attention},
    {"com.microsoft.GroupQueryAttention", attention, shapes::as_first, costs::attention},
    {"com.microsoft.Attention", attention, shapes::projected_attention, costs::projected_attention},
    // Elementwise, with broadcasting.
    {"Add", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise, folds::binary<std::plus<>>,
     {.weights = kVector}},
    {"Sub", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise, folds::binary<std::minus<>>,
     {.weights = kVector}},
    {"Mul", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise, folds::binary<std::multiplies<>>,
     {.weights = kVector}},
    {"Div", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise, folds::divide,
     {.weights = kVector}},
    {"Pow", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise, folds::binary<folds::Power>,
     {.weights = kVector}},
    {"Mod", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::modulo},
    {"Abs", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise, folds::unary<folds::Absolute>},
    {"Neg", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise, folds::unary<std::negate<>>},
    {"Sign", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Reciprocal", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise,
     folds::unary<folds::Reciprocal>},
    {"Sqrt", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise, folds::unary<folds::SquareRoot>},
    {"Exp", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise},
    {"Log", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise},
    {"Erf", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Sin", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Cos", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Tan", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Asin", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Acos", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Atan", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Sinh", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Cosh", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Tanh", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise},
    {"Asinh", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Acosh", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Atanh", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Floor", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise, folds::unary<folds::Floor>},
    {"Ceil", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise, folds::unary<folds::Ceiling>},
    {"Round", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::unary<folds::Nearest>},
    {"Relu", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise},
    {"Not", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::unary<std::logical_not<>>},
    {"And", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise, folds::binary<std::logical_and<>>},
    {"Or", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise, folds::binary<std::logical_or<>>},
    {"Xor", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise},
    {"Equal", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::binary<std::equal_to<>>},
    {"Greater", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::binary<std::greater<>>},
    {"GreaterOrEqual", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::binary<std::greater_equal<>>},
    {"Less", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::binary<std::less<>>},
    {"LessOrEqual", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::binary<std::less_equal<>>},
    {"BitShift", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"BitwiseAnd", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise},
    {"BitwiseOr", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise},
    {"BitwiseXor", elementwise, shapes::broadcast, costs::per_output<1>, cuts::elementwise},
    {"BitwiseNot", elementwise, shapes::as_first, costs::per_output<1>, cuts::elementwise},
    {"IsNaN", elementwise, none, costs::per_output<1>, cuts::elementwise},
    {"Where", elementwise, none, costs::per_output<1>, cuts::elementwise, folds::where},
    {"Sum", elementwise, shapes::broadcast, costs::variadic, cuts::elementwise},
    {"Mean", elementwise, shapes::broadcast, costs::variadic, cuts::elementwise},
    {"Max", elementwise, shapes::broadcast, costs::variadic, cuts::elementwise, folds::several<folds::Larger>},
    {"Min", elementwise, shapes::broadcast, costs::variadic, cuts::elementwise, folds::several<folds::Smaller>},
    {"LeakyRelu", elementwise, shapes::as_first, costs::per_output<2>, cuts::elementwise},
    {"PRelu", elementwise, shapes::as_first, costs::per_output<2>, cuts::elementwise, none, {.weights = slots({1})}},
    {"ThresholdedRelu", elementwise, shapes::as_first, costs::per_output<2>, cuts::elementwise},
    {"Clip", elementwise, shapes::as_first, costs::per_output<2>, cuts::elementwise},
    {"HardSigmoid", elementwise, shapes::as_first, costs::per_output<2>, cuts::elementwise},
    {"Softsign", elementwise, none, costs::per_output<2>, cuts::elementwise},
    {"IsInf", elementwise, none, costs::per_output<2>, cuts::elementwise},
    {"Dropout", elementwise, shapes::as_first, costs::per_output<2>, cuts::elementwise, none,
     {.view_if = is_idle_dropout}},
    {"Sigmoid", elementwise, shapes::as_first, costs::per_output<3>, cuts::elementwise},
    {"Elu", elementwise, shapes::as_first, costs::per_output<3>, cuts::elementwise},
    {"Softplus", elementwise, none, costs::per_output<3>, cuts::elementwise},
    {"Selu", elementwise, shapes::as_first, costs::per_output<3>, cuts::elementwise},
    {"Celu", elementwise, none, costs::per_output<3>, cuts::elementwise},
    {"HardSwish", elementwise, none, costs::per_output<3>, cuts::elementwise},
    {"Shrink", elementwise, none, costs::per_output<3>, cuts::elementwise},
    {"Mish", elementwise, shapes::as_first, costs::per_output<4>, cuts::elementwise},
    {"Swish", elementwise, shapes::as_first, costs::per_output<4>, cuts::elementwise},
    {"com.microsoft.QuickGelu", elementwise, shapes::as_first, costs::per_output<4>, cuts::elementwise},
    {"Gelu", elementwise, shapes::as_first, costs::per_output<5>, cuts::elementwise},
    {"com.microsoft.Gelu", elementwise, shapes::as_first, costs::per_output<5>, cuts::elementwise},
    {"com.microsoft.BiasGelu", elementwise, shapes::as_first, costs::per_output<8>, cuts::elementwise},
    {"com.microsoft.FastGelu", elementwise, shapes::as_first, costs::per_output<8>, cuts::elementwise},
    // Quantisation.
    {"QuantizeLinear", elementwise, none, costs::per_output<3>, cuts::quantised, none,
     {.weights = slots({1, 2}), .passes_weights = true}},
    {"DequantizeLinear", elementwise, none, costs::per_output<2>, cuts::quantised, none,
     {.weights = slots({1, 2}), .passes_weights = true, .widens = true}},
    {"com.microsoft.QLinearLeakyRelu", elementwise, shapes::as_first, costs::per_output<2>, cuts::quantised},
    {"com.microsoft.QLinearSigmoid", elementwise, shapes::as_first, costs::per_output<3>, cuts::quantised},
    {"com.microsoft.QLinearAdd", elementwise, shapes::quantised_broadcast, costs::per_output<3>, cuts::quantised},
    {"com.microsoft.QLinearMul", elementwise, shapes::quantised_broadcast, costs::per_output<3>, cuts::quantised},
    {"com.microsoft.QuantizeLinear", elementwise, shapes::as_first},
    {"com.microsoft.DequantizeLinear", elementwise, shapes::as_first, none, none, none, {.widens = true}},
    {"DynamicQuantizeLinear", reduction, none, costs::per_input<5>},
    // Normalisations: two passes take mean and variance, one applies them, one scales and shifts. The statistics of a
    // BatchNormalization are folded into one scale and one shift.
    {"BatchNormalization", normalisation, shapes::as_first, costs::per_input<2>, cuts::channels<>, none,
     {.weights = slots({1, 2, 3, 4})}},
    {"LayerNormalization", normalisation, shapes::as_first, costs::per_input<7>, cuts::rows, none,
     {.weights = slots({1, 2})}},
    {"InstanceNormalization", normalisation, shapes::as_first, costs::per_input<7>, cuts::channels<2>, none,
     {.weights = slots({1, 2})}},
    {"GroupNormalization", normalisation, shapes::as_first, costs::per_input<7>, cuts::channels<1>, none,
     {.weights = slots({1, 2})}},
    {"MeanVarianceNormalization", normalisation, none, costs::per_input<7>},
    {"com.microsoft.LayerNormalization", normalisation, shapes::as_first, costs::per_input<7>, cuts::rows},
    {"com.microsoft.SkipLayerNormalization", normalisation, shapes::as_first, costs::per_input<8>, cuts::rows},
    {"RMSNormalization", normalisation, shapes::as_first, costs::per_input<4>, cuts::rows, none,
     {.weights = slots({1})}},
    {"SimplifiedLayerNormalization", normalisation, shapes::as_first, costs::per_input<4>},
    {"com.microsoft.SimplifiedLayerNormalization", normalisation, shapes::as_first, costs::per_input<4>, cuts::rows},
    {"com.microsoft.SkipSimplifiedLayerNormalization", normalisation, shapes::as_first, costs::per_input<5>,
     cuts::rows},
    {"LpNormalization", normalisation, none, costs::per_input<3>},
    {"LRN", normalisation, none, costs::local_response},
    {"Softmax", normalisation, none, costs::per_input<5>, cuts::softmax},
    {"LogSoftmax", normalisation, none, costs::per_input<5>, cuts::softmax},
    {"Hardmax", normalisation, none, costs::per_input<5>, cuts::softmax},
    {"com.microsoft.QLinearSoftmax", normalisation, shapes::as_first, costs::per_input<5>},
    {"com.microsoft.BiasSoftmax", normalisation, shapes::as_first, costs::per_input<6>},
    // Reductions.
    {"ReduceSum", reduction, none, costs::per_input<1>, cuts::reduction, folds::reduce<std::plus<>>,
     {.axes_input_since = 13}},
    {"ReduceMean", reduction, none, costs::per_input<1>, cuts::reduction, none, {.axes_input_since = 18}},
    {"ReduceMax", reduction, none, costs::per_input<1>, cuts::reduction, folds::reduce<folds::Larger>,
     {.axes_input_since = 18}},
    {"ReduceMin", reduction, none, costs::per_input<1>, cuts::reduction, folds::reduce<folds::Smaller>,
     {.axes_input_since = 18}},
    {"ReduceProd", reduction, none, costs::per_input<1>, cuts::reduction, folds::reduce<std::multiplies<>>,
     {.axes_input_since = 18}},
    {"ReduceL1", reduction, none, costs::per_input<2>, cuts::reduction, none, {.axes_input_since = 18}},
    {"ReduceL2", reduction, none, costs::per_input<2>, cuts::reduction, none, {.axes_input_since = 18}},
    {"ReduceSumSquare", reduction, none, costs::per_input<2>, cuts::reduction, none, {.axes_input_since = 18}},
    {"ReduceLogSum", reduction, none, costs::per_input<2>, cuts::reduction, none, {.axes_input_since = 18}},
    {"ReduceLogSumExp", reduction, none, costs::per_input<3>, cuts::reduction, none, {.axes_input_since = 18}},
    {"ArgMax", reduction, none, costs::per_input<1>, cuts::position},
    {"ArgMin", reduction, none, costs::per_input<1>, cuts::position},
    {"CumSum", reduction, none, costs::per_input<1>},
    {"CumProd", reduction, shapes::as_first},
    {"TopK", reduction, none, costs::top_k},
    {"SoftmaxCrossEntropyLoss", reduction, none, costs::per_input<5>},
    {"NegativeLogLikelihoodLoss", reduction, none, costs::log_likelihood},
    {"DFT", reduction, none, costs::fourier},
    {"STFT", reduction, none, costs::fourier},
    {"Det", reduction, none, costs::determinant},
    {"NonMaxSuppression", reduction, none, costs::suppression},
    // Pools.
    {"MaxPool", pool, none, costs::pool<1>, cuts::pool},
    {"AveragePool", pool, none, costs::pool<1>, cuts::pool},
    {"LpPool", pool, none, costs::pool<2>, cuts::pool},
    {"com.microsoft.QLinearAveragePool", pool, none, costs::pool<1>},
    {"GlobalAveragePool", pool, none, costs::per_input<1>, cuts::global_pool},
    {"GlobalMaxPool", pool, none, costs::per_input<1>, cuts::global_pool},
    {"GlobalLpPool", pool, none, costs::per_input<2>, cuts::global_pool},
    {"com.microsoft.QLinearGlobalAveragePool", pool, none, costs::per_input<1>},
    {"MaxRoiPool", pool, none, costs::per_output<8>},
    {"RoiAlign", pool, none, costs::per_output<8>},
    // Views.
    {"Identity", view, none, costs::nothing, none, folds::same, {.passes_weights = true}},
    {"Reshape", view, none, costs::nothing, none, folds::same, {.passes_weights = true, .keeps_elements = true}},
    {"Flatten", view, none, costs::nothing, none, folds::same, {.passes_weights = true}},
    {"Squeeze", view, none, costs::nothing, none, folds::same, {.passes_weights = true}},
    {"Unsqueeze", view, none, costs::nothing, none, folds::same, {.passes_weights = true}},
    // Movement of data.
    {"Cast", movement, shapes::as_first, costs::nothing, cuts::elementwise, folds::cast,
     {.passes_weights = true, .widens = true, .view_if = is_idle_cast}},
    {"CastLike", movement, none, costs::nothing},
    {"Transpose", movement, none, costs::nothing, cuts::transpose, folds::transpose, {.passes_weights = true}},
    {"Concat", movement, none, costs::nothing, cuts::concat, folds::concat},
    {"Split", movement, none, costs::nothing, cuts::split, folds::split, {.each_output = true}},
    {"Slice", movement, none, costs::nothing, cuts::slice, folds::slice, {.reads = Reads::what_it_writes}},
    {"Gather", movement, none, costs::nothing, cuts::gather, folds::gather,
     {.weights = slots({0}, Offer::matrix), .reads = Reads::what_it_writes}},
    {"GatherElements", movement, none, costs::nothing, none, none, {.reads = Reads::what_it_writes}},
    {"GatherND", movement, none, costs::nothing, none, none, {.reads = Reads::what_it_writes}},
    {"Scatter", movement, none, costs::nothing},
    {"ScatterElements", movement, none, costs::nothing},
    {"ScatterND", movement, none, costs::nothing},
    {"TensorScatter", movement, shapes::as_first},
    {"Pad", movement, none, costs::nothing, cuts::pad},
    {"Tile", movement, none, costs::nothing},
    {"Expand", movement, none, costs::nothing, cuts::broadcast, folds::expand},
    {"OneHot", movement, none, costs::nothing},
    {"Compress", movement, none, costs::nothing, none, none, {.reads = Reads::what_it_writes}},
    {"ReverseSequence", movement, none, costs::nothing},
    {"Trilu", movement, none, costs::nothing},
    {"DepthToSpace", movement, none, costs::nothing},
    {"SpaceToDepth", movement, none, costs::nothing},
    {"NonZero", movement, none, costs::nothing},
    {"Unique", movement, none, costs::nothing},
    {"MaxUnpool", movement, none, costs::nothing},
    {"Col2Im", movement, none, costs::nothing},
    {"CenterCropPad", movement, none, costs::nothing},
    {"Resize", movement, none, costs::resize, cuts::resize},
    {"Upsample", movement, none, costs::resize, cuts::resize},
    {"GridSample", movement, none, costs::per_output<8>},
    {"RotaryEmbedding", movement, shapes::as_first, costs::per_input<3>},
    {"com.microsoft.RotaryEmbedding", movement, shapes::as_first, costs::per_input<3>},
    {"SequenceConstruct", movement, none, costs::nothing},
    {"SequenceEmpty", movement, none, costs::nothing},
    {"SequenceAt", movement, none, costs::nothing},
    {"SequenceInsert", movement, none, costs::nothing},
    {"SequenceErase", movement, none, costs::nothing},
    {"SequenceLength", movement, none, costs::nothing},
    {"SplitToSequence", movement, none, costs::nothing},
    {"ConcatFromSequence", movement, none, costs::nothing},
    {"Optional", movement, none, costs::nothing},
    {"OptionalGetElement", movement, none, costs::nothing},
    {"OptionalHasElement", movement, none, costs::nothing},
    // Made without data.
    {"Constant", constant, none, costs::nothing},
    {"Shape", movement, none, costs::nothing, none, none, {.reads = Reads::nothing, .fold_type = folds::shape_of}},
    {"Size", movement, none, costs::nothing, none, none, {.reads = Reads::nothing, .fold_type = folds::size_of}},
    {"Range", movement, none, costs::nothing, none, folds::range},
    {"ConstantOfShape", movement, none, costs::nothing, none, folds::constant_of_shape},
    {"EyeLike", movement, none, costs::nothing, none, none, {.reads = Reads::nothing}},
    {"HannWindow", movement, none, costs::per_output<1>},
    {"HammingWindow", movement, none, costs::per_output<1>},
    {"BlackmanWindow", movement, none, costs::per_output<1>},
    {"RandomNormal", random, none, costs::per_output<1>},
    {"RandomNormalLike", random, none, costs::per_output<1>, none, none, {.reads = Reads::nothing}},
    {"RandomUniform", random, none, costs::per_output<1>},
    {"RandomUniformLike", random, none, costs::per_output<1>, none, none, {.reads = Reads::nothing}},
    {"Multinomial", random, none, costs::per_output<1>},
    {"Bernoulli", random, none, costs::per_output<1>},
    // Control flow.
    {"If", branch},
    {"Loop", loop},
    {"Scan", scan},
};
// clang-format on

constexpr Operator kUnknownOperator = {.name = {}};

}  // namespace

const Operator& operator_of(const onnx::NodeProto& node) {
  static const std::unordered_map<std::string_view, const Operator*> kRows = [] {
    std::unordered_map<std::string_view, const Operator*> rows;
    for (const Operator& row : kOperators) rows.emplace(row.name, &row);
    return rows;
  }();
  const auto found = kRows.find(operator_name(node));
  return found == kRows.end() ? kUnknownOperator : *found->second;
}

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> rows;
  for (const Operator& row : kOperators) rows.push_back(&row);
  return rows;
}

std::string kind_of(const Operator& op, const onnx::NodeProto& node) {
  if (op.is == OperatorClass::product) return "matmul";
  return op.is == OperatorClass::convolution ? "conv" : operator_name(node);
}

bool is_view(const Operator& op, const onnx::NodeProto& node, const onnx::TypeProto& input) {
  return op.is == OperatorClass::view || (op.traits.view_if != nullptr && op.traits.view_if(node, input));
}

}  // namespace doppler::program
