#include "doppler/program/onnx/op_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "doppler/program/onnx/equation.h"

namespace doppler::program {
namespace {

using onnx::TypeProto;

// A node with its complete types, as the formulas see it.
struct View {
  const onnx::NodeProto& node;
  const std::vector<const TypeProto*>& inputs;
  const std::vector<TypeProto>& outputs;

  bool has(std::size_t slot) const { return slot < inputs.size() && inputs[slot] != nullptr; }
  double in(std::size_t slot) const { return has(slot) ? static_cast<double>(elements(*inputs[slot])) : 0; }
  double out(std::size_t slot = 0) const {
    return slot < outputs.size() ? static_cast<double>(elements(outputs[slot])) : 0;
  }
  Shape dims(std::size_t slot) const { return has(slot) ? dims_of(*inputs[slot]).value_or(Shape()) : Shape(); }
};

double at(const Shape& dims, std::ptrdiff_t from_end) {
  const auto rank = static_cast<std::ptrdiff_t>(dims.size());
  return from_end >= 1 && from_end <= rank ? static_cast<double>(dims[static_cast<std::size_t>(rank - from_end)]) : 1;
}

struct Arithmetic {
  double macs = 0, flops = 0;  // flops beyond 2·macs
};

// Every output element is a sum over the weights of its channel: W is [channels out, channels in / groups, window].
Arithmetic conv(const View& op, std::size_t weights, std::size_t bias) {
  const double per_output = op.in(weights) / std::max(1.0, at(op.dims(weights), std::ssize(op.dims(weights))));
  return {op.out() * per_output, op.has(bias) ? op.out() : 0};
}

// Every input element meets the weights of its channel: W is [channels in, channels out / groups, window].
Arithmetic conv_transpose(const View& op) {
  const double per_input = op.in(1) / std::max(1.0, at(op.dims(1), std::ssize(op.dims(1))));
  return {op.in(0) * per_input, op.has(2) ? op.out() : 0};
}

Arithmetic matmul(const View& op) { return {op.out() * at(op.dims(0), 1), 0}; }

Arithmetic fused_matmul(const View& op) {
  return {op.out() * at(op.dims(0), int_attribute(op.node, "transA", 0) != 0 ? 2 : 1), 0};
}

Arithmetic gemm(const View& op) {
  Arithmetic result = fused_matmul(op);
  result.flops = op.has(2) ? op.out() : 0;
  return result;
}

// One pass over the space of all labels per operand beyond the first.
Arithmetic einsum(const View& op) {
  std::vector<Shape> shapes;
  for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) shapes.push_back(op.dims(slot));
  double space = 1;
  for (const auto& [label, size] : parse_equation(op.node, shapes).sizes) space *= static_cast<double>(size);
  const auto operands = static_cast<double>(shapes.size());
  return operands > 1 ? Arithmetic{space * (operands - 1), 0} : Arithmetic{0, space};
}

// X[positions, batch, in] (or batch first) through cells of W[directions, gates·hidden, in] and
// R[directions, gates·hidden, hidden]; `functions` per hidden element and step besides the products.
Arithmetic recurrent(const View& op, double functions) {
  const Shape x = op.dims(0);
  const double steps = at(x, 3) * at(x, 2), hidden = at(op.dims(2), 1);
  const double directions = at(op.dims(1), 3);
  return {steps * (op.in(1) + op.in(2)), steps * directions * hidden * functions};
}

// softmax(Q·Kᵀ)·V with Q, K and V of [batch, …, positions, width].
Arithmetic attention(const View& op) {
  const double queries = op.in(0) / std::max(1.0, at(op.dims(0), 1));
  const double keys = at(op.dims(1), 2), width = at(op.dims(0), 1);
  return {2 * queries * keys * width, 5 * queries * keys};
}

// Q, K and V are projected from X[batch, positions, in] by W[in, 3·hidden] first.
Arithmetic projected_attention(const View& op) {
  const Shape x = op.dims(0);
  const double batch = at(x, 3), positions = at(x, 2), hidden = at(op.dims(1), 1) / 3;
  const double scores = batch * positions * positions;
  return {batch * positions * op.in(1) + 2 * scores * hidden, 5 * scores};
}

double window(const onnx::NodeProto& node) {
  double size = 1;
  for (const Index length : ints_attribute(node, "kernel_shape").value_or(std::vector<Index>()))
    size *= static_cast<double>(length);
  return size;
}

// Samples that an output element of an interpolation reads, one multiply-add each.
double samples(const View& op) {
  const std::string mode = string_attribute(op.node, "mode", "nearest");
  if (mode == "nearest") return 0;
  const Shape in = op.dims(0), out = dims_of(op.outputs[0]).value_or(Shape());
  double count = 1;
  for (std::size_t i = 0; i < std::min(in.size(), out.size()); ++i)
    if (in[i] != out[i]) count *= mode == "cubic" ? 4 : 2;
  return count;
}

using Formula = Arithmetic (*)(const View& op);

template <int N>
Arithmetic per_output(const View& op) {
  return {0, N * op.out()};
}
template <int N>
Arithmetic per_input(const View& op) {
  return {0, N * op.in(0)};
}
Arithmetic nothing(const View&) { return {}; }
Arithmetic variadic(const View& op) { return {0, static_cast<double>(op.inputs.size()) * op.out()}; }
Arithmetic pool(const View& op) { return {0, op.out() * window(op.node)}; }

using Table = std::map<std::string, Formula, std::less<>>;

void add(Table& table, std::initializer_list<const char*> names, Formula formula) {
  for (const char* name : names) table.emplace(name, formula);
}

Table products() {
  Table table;
  add(table, {"Conv", "ConvInteger", "com.microsoft.FusedConv", "DeformConv"},
      [](const View& op) { return conv(op, 1, op.node.op_type() == "ConvInteger" ? 99 : 2); });
  add(table, {"QLinearConv"}, [](const View& op) { return conv(op, 3, 8); });
  add(table, {"ConvTranspose"}, conv_transpose);
  add(table,
      {"MatMul", "MatMulInteger", "QLinearMatMul", "com.microsoft.MatMulNBits", "com.microsoft.DynamicQuantizeMatMul",
       "com.microsoft.MatMulIntegerToFloat"},
      matmul);
  add(table, {"com.microsoft.FusedMatMul"}, fused_matmul);
  add(table, {"Gemm", "com.microsoft.FusedGemm"}, gemm);
  add(table, {"Einsum"}, einsum);
  // Gates and cell updates: LSTM σσσ tanh, c = f·c + i·g, h = o·tanh c, and adding the two products of 4 gates.
  add(table, {"LSTM", "com.microsoft.DynamicQuantizeLSTM"},
      [](const View& op) { return recurrent(op, 3 * 3 + 2 + 4 + 4 + 4); });
  add(table, {"GRU"}, [](const View& op) { return recurrent(op, 2 * 3 + 1 + 5 + 3 + 3); });
  add(table, {"RNN"}, [](const View& op) { return recurrent(op, 3); });
  add(table, {"Attention", "com.microsoft.MultiHeadAttention", "com.microsoft.GroupQueryAttention"}, attention);
  add(table, {"com.microsoft.Attention"}, projected_attention);
  return table;
}

Table elementwise() {
  Table table;
  add(table, {"Abs",         "Neg",
              "Relu",        "Add",
              "Sub",         "Mul",
              "Div",         "Pow",
              "Mod",         "Exp",
              "Log",         "Sqrt",
              "Reciprocal",  "Erf",
              "Tanh",        "Sin",
              "Cos",         "Tan",
              "Asin",        "Acos",
              "Atan",        "Sinh",
              "Cosh",        "Asinh",
              "Acosh",       "Atanh",
              "Floor",       "Ceil",
              "Round",       "Sign",
              "And",         "Or",
              "Xor",         "Not",
              "Equal",       "Greater",
              "Less",        "GreaterOrEqual",
              "LessOrEqual", "BitShift",
              "BitwiseAnd",  "BitwiseOr",
              "BitwiseXor",  "BitwiseNot",
              "IsNaN",       "Where"},
      per_output<1>);
  add(table,
      {"LeakyRelu", "PRelu", "ThresholdedRelu", "Clip", "HardSigmoid", "Softsign", "IsInf", "Dropout",
       "com.microsoft.QLinearLeakyRelu"},
      per_output<2>);
  add(table,
      {"Sigmoid", "Elu", "Softplus", "Selu", "Celu", "HardSwish", "Shrink", "com.microsoft.QLinearSigmoid",
       "com.microsoft.QLinearAdd", "com.microsoft.QLinearMul"},
      per_output<3>);
  add(table, {"Mish", "Swish", "com.microsoft.QuickGelu"}, per_output<4>);
  add(table, {"Gelu", "com.microsoft.Gelu"}, per_output<5>);
  add(table, {"com.microsoft.BiasGelu", "com.microsoft.FastGelu"}, per_output<8>);
  add(table, {"Sum", "Mean", "Max", "Min"}, variadic);
  add(table, {"DequantizeLinear"}, per_output<2>);
  add(table, {"QuantizeLinear"}, per_output<3>);
  return table;
}

void add_normalisations_and_reductions(Table& table) {
  // Two passes for mean and variance, one to apply them, one to scale and shift.
  add(table,
      {"LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization",
       "com.microsoft.LayerNormalization"},
      per_input<7>);
  add(table, {"com.microsoft.SkipLayerNormalization"}, per_input<8>);
  add(table, {"RMSNormalization", "SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization"},
      per_input<4>);
  add(table, {"com.microsoft.SkipSimplifiedLayerNormalization"}, per_input<5>);
  add(table, {"SoftmaxCrossEntropyLoss"}, per_input<5>);
  add(table, {"NegativeLogLikelihoodLoss"}, [](const View& op) { return Arithmetic{0, 2 * op.in(1)}; });
  // A fast Fourier transform takes about 5 n log n; a determinant a third of n³ multiply-adds.
  add(table, {"DFT", "STFT"}, [](const View& op) {
    return Arithmetic{0, 2.5 * op.out() * std::max(1.0, std::log2(at(dims_of(op.outputs[0]).value_or(Shape()), 2)))};
  });
  add(table, {"Det"}, [](const View& op) { return Arithmetic{op.in(0) * at(op.dims(0), 1) / 3, 0}; });
  add(table, {"BatchNormalization"}, per_input<2>);  // statistics are folded into one scale and one shift
  add(table, {"LpNormalization"}, per_input<3>);
  add(table, {"DynamicQuantizeLinear"}, per_input<5>);
  add(table, {"LRN"}, [](const View& op) {
    return Arithmetic{0, op.in(0) * (2 * static_cast<double>(int_attribute(op.node, "size", 1)) + 3)};
  });
  add(table, {"Softmax", "LogSoftmax", "Hardmax", "com.microsoft.QLinearSoftmax"}, per_input<5>);
  add(table, {"com.microsoft.BiasSoftmax"}, per_input<6>);
  add(table, {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ArgMax", "ArgMin", "CumSum"},
      per_input<1>);
  add(table, {"ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"}, per_input<2>);
  add(table, {"ReduceLogSumExp"}, per_input<3>);
  add(table, {"GlobalAveragePool", "GlobalMaxPool"}, per_input<1>);
  add(table, {"GlobalLpPool"}, per_input<2>);
  add(table, {"AveragePool", "MaxPool", "com.microsoft.QLinearAveragePool"}, pool);
  add(table, {"LpPool"}, [](const View& op) { return Arithmetic{0, 2 * op.out() * window(op.node)}; });
  add(table, {"com.microsoft.QLinearGlobalAveragePool"}, per_input<1>);
  // A sort network of k per element; real ones do less.
  add(table, {"TopK"}, [](const View& op) {
    return Arithmetic{0, op.in(0) * std::max(1.0, std::log2(at(dims_of(op.outputs[0]).value_or(Shape()), 1) + 1))};
  });
}

void add_movement(Table& table) {
  add(table,
      {"Identity",
       "Reshape",
       "Flatten",
       "Squeeze",
       "Unsqueeze",
       "Transpose",
       "Concat",
       "Split",
       "Slice",
       "Gather",
       "GatherElements",
       "GatherND",
       "Scatter",
       "ScatterElements",
       "ScatterND",
       "Pad",
       "Tile",
       "Expand",
       "Cast",
       "CastLike",
       "OneHot",
       "Compress",
       "ReverseSequence",
       "Trilu",
       "DepthToSpace",
       "SpaceToDepth",
       "NonZero",
       "Shape",
       "Size",
       "Range",
       "ConstantOfShape",
       "EyeLike",
       "Constant",
       "Unique",
       "MaxUnpool",
       "Col2Im",
       "SequenceConstruct",
       "SequenceEmpty",
       "SequenceAt",
       "SequenceInsert",
       "SequenceErase",
       "SequenceLength",
       "SplitToSequence",
       "ConcatFromSequence",
       "Optional",
       "OptionalGetElement",
       "OptionalHasElement",
       "CenterCropPad"},
      nothing);
  add(table, {"RotaryEmbedding", "com.microsoft.RotaryEmbedding"}, per_input<3>);
  add(table, {"Resize", "Upsample"}, [](const View& op) { return Arithmetic{0, 2 * samples(op) * op.out()}; });
  add(table,
      {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial",
       "HannWindow", "HammingWindow", "BlackmanWindow"},
      per_output<1>);
  add(table, {"GridSample"}, per_output<8>);
  add(table, {"MaxRoiPool", "RoiAlign"}, per_output<8>);
  // Every box meets every other of its batch: four comparisons and a handful of products for the overlap.
  add(table, {"NonMaxSuppression"}, [](const View& op) {
    return Arithmetic{0, 12 * op.in(0) / 4 * at(op.dims(0), 2)};
  });
}

const Table& formulas() {
  static const Table kTable = [] {
    Table table = products();
    table.merge(elementwise());
    add_normalisations_and_reductions(table);
    add_movement(table);
    return table;
  }();
  return kTable;
}

// Operators that read no more of their first input than they write.
const std::set<std::string, std::less<>> kReadsWhatItWrites = {"Gather", "GatherElements", "GatherND", "Slice",
                                                               "Compress"};
const std::set<std::string, std::less<>> kReadsNothing = {"Shape", "Size", "EyeLike", "RandomNormalLike",
                                                          "RandomUniformLike"};

Bytes bytes_read(const View& op) {
  Bytes total = 0, written = 0;
  for (const TypeProto& output : op.outputs) written += bytes_of(output);
  const std::string name = operator_name(op.node);
  for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
    if (!op.has(slot)) continue;
    const Bytes whole = bytes_of(*op.inputs[slot]);
    if (slot == 0 && kReadsNothing.contains(name)) continue;
    total += slot == 0 && kReadsWhatItWrites.contains(name) ? std::min(whole, written) : whole;
  }
  return total;
}

}  // namespace

void OpCost::operator+=(const OpCost& other) {
  flops += other.flops;
  macs += other.macs;
  read += other.read;
  written += other.written;
  known = known && other.known;
}

OpCost OpCost::times(double count) const {
  // Saturating: a Loop may claim any number of turns.
  constexpr double kMost = 1e18;
  const auto scaled = [&](Bytes bytes) {
    return static_cast<Bytes>(std::min(kMost, static_cast<double>(bytes) * count));
  };
  return {flops * count, macs * count, scaled(read), scaled(written), known};
}

OpCost cost_of(const onnx::NodeProto& node, const std::vector<const TypeProto*>& inputs,
               const std::vector<TypeProto>& outputs) {
  const View op{node, inputs, outputs};
  OpCost cost;
  cost.read = bytes_read(op);
  for (const TypeProto& output : outputs) cost.written += bytes_of(output);
  const auto formula = formulas().find(operator_name(node));
  if (formula == formulas().end()) {
    cost.known = false;
    return cost;
  }
  const Arithmetic arithmetic = formula->second(op);
  cost.macs = arithmetic.macs;
  cost.flops = 2 * arithmetic.macs + arithmetic.flops;
  return cost;
}

bool is_elementwise(const onnx::NodeProto& node) {
  static const Table kTable = elementwise();
  return kTable.contains(operator_name(node));
}

bool is_matrix_product(const onnx::NodeProto& node) {
  static const std::set<std::string, std::less<>> kProducts = {"MatMul",
                                                               "MatMulInteger",
                                                               "QLinearMatMul",
                                                               "Gemm",
                                                               "Einsum",
                                                               "com.microsoft.FusedMatMul",
                                                               "com.microsoft.FusedGemm",
                                                               "com.microsoft.MatMulNBits",
                                                               "com.microsoft.DynamicQuantizeMatMul",
                                                               "com.microsoft.MatMulIntegerToFloat"};
  return kProducts.contains(operator_name(node));
}

std::string kind_of(const onnx::NodeProto& node) {
  static const std::set<std::string, std::less<>> kConvolutions = {
      "Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "com.microsoft.FusedConv"};
  const std::string name = operator_name(node);
  if (is_matrix_product(node)) return "matmul";
  return kConvolutions.contains(name) ? "conv" : name;
}

bool is_view(const onnx::NodeProto& node, const TypeProto& input) {
  static const std::set<std::string, std::less<>> kViews = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  const std::string name = operator_name(node);
  if (kViews.contains(name)) return true;
  if (name == "Dropout") return node.output_size() < 2 || node.output(1).empty();  // the identity, outside training
  return name == "Cast" && int_attribute(node, "to", 0) == element_of(input);
}

}  // namespace doppler::program
