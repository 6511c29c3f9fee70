#include <array>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "doppler/errors.h"
#include "doppler/kernels/array.h"
#include "doppler/program/onnx/tensor_file.h"
#include "tests/kernels/onnx/kernel_runs.h"

namespace doppler::test {
namespace {

using namespace model;

// Sums of a few hundred products of f32, in another order.
constexpr double kRounding = 2e-5;

Attributes with(Attributes attributes, const std::string& name, Attribute::Values value) {
  attributes.set(name, std::move(value));
  return attributes;
}

struct NamedActivation {
  const char* name;
  std::vector<float> parameters;
};
const std::vector<NamedActivation> kActivations = {
    {"Relu", {}},      {"Clip", {-0.5F, 0.7F}}, {"LeakyRelu", {0.1F}}, {"HardSigmoid", {0.2F, 0.5F}},
    {"HardSwish", {}}, {"Sigmoid", {}},         {"Silu", {}},          {"Tanh", {}},
    {"Gelu", {}},      {"GeluTanh", {}},        {"Elu", {0.8F}},       {"Softplus", {}}};

// The activation as a node of its own.
Tensor activated(const NamedActivation& activation, const Tensor& x) {
  const std::string name = activation.name;
  if (name == "Clip") return compute("Clip", {x, floats({}, {-0.5F}), floats({}, {0.7F})});
  if (name == "LeakyRelu") return compute(name, {x}, {{"alpha", 0.1F}});
  if (name == "HardSigmoid") return compute(name, {x}, {{"alpha", 0.2F}, {"beta", 0.5F}});
  if (name == "Elu") return compute(name, {x}, {{"alpha", 0.8F}});
  if (name == "Silu") return compute("doppler.Silu", {x});
  if (name == "Gelu") return compute("doppler.Gelu", {x});
  if (name == "GeluTanh") return compute("doppler.Gelu", {x}, {{"approximate", std::string("tanh")}});
  return compute(name, {x});
}

TEST(AFusedConvolution, IsTheConvolutionThenTheResidualThenTheActivation) {
  const Attributes attributes = {{"pads", std::vector<Index>{1, 1, 1, 1}}};
  const Tensor x = drawn({2, 32, 9, 11}, 1), w = drawn({16, 32, 3, 3}, 2), b = drawn({16}, 3);
  const Tensor residual = drawn({2, 16, 9, 11}, 4);
  const Tensor sum = compute("Add", {compute("Conv", {x, w, b}, attributes), residual});
  for (const NamedActivation& activation : kActivations) {
    const Tensor expected = activated(activation, sum);
    const Attributes fused =
        with(with(attributes, "activation", std::string(activation.name)), "activation_params", activation.parameters);
    for (const Layout layout : {Layout::row_major, Layout::channels_last, Layout::blocked16}) {
      const std::vector<Tensor> inputs = {layout == Layout::row_major ? x : in_layout(x, layout), w, b,
                                          layout == Layout::row_major ? residual : in_layout(residual, layout)};
      KernelNode node = node_of("doppler.Conv", inputs, fused, 6);
      node.output_layouts = {layout};
      const Tensor found = in_layout(run_first(node, inputs), Layout::row_major);
      // oneDNN's error function and hyperbolic tangent are approximations.
      EXPECT_LT(relative_difference(found, expected), 1e-4) << activation.name << " " << to_string(layout);
    }
  }
}

struct ConvCase {
  const char* what;
  Shape x, w;
  Attributes attributes;
};

std::vector<ConvCase> conv_cases() {
  using List = std::vector<Index>;
  return {
      {"one by one", {1, 64, 14, 14}, {32, 64, 1, 1}, {}},
      {"the first of a network", {1, 3, 32, 32}, {32, 3, 7, 7}, {{"strides", List{2, 2}}, {"pads", List{3, 3, 3, 3}}}},
      {"grouped", {1, 32, 14, 14}, {64, 8, 3, 3}, {{"group", Index{4}}, {"pads", List{1, 1, 1, 1}}}},
      {"depthwise", {1, 48, 14, 14}, {48, 1, 5, 5}, {{"group", Index{48}}, {"pads", List{2, 2, 2, 2}}}},
      {"dilated", {1, 32, 20, 20}, {32, 32, 3, 3}, {{"dilations", List{2, 2}}, {"pads", List{2, 2, 2, 2}}}},
      {"of odd channels", {1, 24, 14, 14}, {40, 24, 3, 3}, {{"pads", List{1, 1, 1, 1}}}},
      {"strided with pads on one side",
       {1, 16, 15, 15},
       {32, 16, 3, 3},
       {{"strides", List{2, 2}}, {"pads", List{0, 0, 1, 1}}}},
      {"of one dimension", {1, 32, 40}, {32, 32, 5}, {{"pads", List{2, 2}}}},
      {"of three dimensions", {1, 16, 6, 6, 6}, {16, 16, 3, 3, 3}, {}}};
}

// oneDNN's reference implementations are "ref:any", "ref_int8:any", "simple:any" and the like.
bool is_fast(const std::string& implementation) {
  return implementation.starts_with("onednn ") && implementation.find("ref") == std::string::npos &&
         implementation.find("simple") == std::string::npos;
}

TEST(AConvolution, IsNeverOneDnnsReferenceInAnyLayout) {
  for (const ConvCase& one : conv_cases()) {
    const std::vector<Tensor> inputs = {drawn(one.x, 1), drawn(one.w, 2)};
    const KernelNode plain = node_of("Conv", inputs, one.attributes, 2);
    const std::unique_ptr<NodeKernel> kernel = kernel_library().make(plain);
    EXPECT_TRUE(is_fast(kernel->implementation())) << one.what << ": " << kernel->implementation();
    EXPECT_FALSE(kernel->reads(1)) << one.what << ": constant weights are packed";
    // The same numbers come out of plain loops in f64.
    const std::vector<Tensor> doubles = {compute("Cast", {inputs[0]}, {{"to", Index{11}}}),
                                         compute("Cast", {inputs[1]}, {{"to", Index{11}}})};
    const Tensor expected = compute("Cast", {compute("Conv", doubles, one.attributes)}, {{"to", Index{1}}});
    EXPECT_LT(relative_difference(run_first(plain, inputs), expected), kRounding) << one.what;
    EXPECT_FALSE(kernel_library().layouts(plain).empty()) << one.what;
    for (const LayoutChoice& choice : kernel_library().layouts(plain)) {
      KernelNode node = plain;
      const Tensor x = choice.inputs[0] == Layout::row_major ? inputs[0] : in_layout(inputs[0], choice.inputs[0]);
      node.inputs[0].type = x.type;
      node.output_layouts = choice.outputs;
      EXPECT_TRUE(is_fast(kernel_library().make(node)->implementation()))
          << one.what << " " << to_string(choice.outputs[0]) << ": " << kernel_library().make(node)->implementation();
      const Tensor found = in_layout(run_first(node, {x, inputs[1]}), Layout::row_major);
      EXPECT_LT(relative_difference(found, expected), kRounding) << one.what << " " << to_string(choice.outputs[0]);
    }
  }
}

TEST(AnOperatorWithLayouts, ComputesTheSameInEachOfThem) {
  using List = std::vector<Index>;
  const Tensor x = drawn({2, 32, 7, 9}, 1), y = drawn({2, 32, 7, 9}, 2), c = drawn({32, 1, 1}, 3), v = drawn({32}, 4);
  const Tensor positive = compute("Abs", {v});
  const Attributes window = {{"kernel_shape", List{3, 3}}, {"strides", List{2, 2}}, {"pads", List{1, 1, 1, 1}}};
  const std::vector<std::pair<std::string, std::pair<std::vector<Tensor>, Attributes>>> cases = {
      {"Relu", {{x}, {}}},
      {"Sigmoid", {{x}, {}}},
      {"Add", {{x, y}, {}}},
      {"Mul", {{x, c}, {}}},
      {"Sum", {{x, y, x}, {}}},
      {"Concat", {{x, y}, {{"axis", Index{1}}}}},
      {"MaxPool", {{x}, window}},
      {"AveragePool", {{x}, window}},
      {"GlobalAveragePool", {{x}, {}}},
      {"BatchNormalization", {{x, v, v, v, positive}, {}}}};
  for (const auto& [op, arguments] : cases) {
    const auto& [inputs, attributes] = arguments;
    const Tensor expected = compute(op, inputs, attributes);
    const KernelNode plain = node_of(op, inputs, attributes, 0);
    const std::vector<LayoutChoice> choices = kernel_library().layouts(plain);
    EXPECT_FALSE(choices.empty()) << op;
    for (const LayoutChoice& choice : choices) {
      std::vector<Tensor> laid_out = inputs;
      KernelNode node = plain;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Layout layout = i < choice.inputs.size() ? choice.inputs[i] : Layout::row_major;
        if (layout != Layout::row_major) laid_out[i] = in_layout(inputs[i], layout);
        node.inputs[i].type = laid_out[i].type;
      }
      node.output_layouts = choice.outputs;
      const Tensor found = run_first(node, laid_out);
      EXPECT_EQ(found.type.layout, choice.outputs[0]);
      EXPECT_LT(relative_difference(in_layout(found, Layout::row_major), expected), 1e-6)
          << op << " " << to_string(choice.outputs[0]);
    }
  }
}

TEST(AFusedProduct, ScalesAddsAndActivates) {
  const Tensor a = drawn({2, 5, 24}, 1), b = drawn({24, 40}, 2), bias = drawn({40}, 3), residual = drawn({2, 5, 40}, 4);
  const Tensor product = compute("Mul", {compute("MatMul", {a, b}), floats({}, {0.25F})});
  const Tensor sum = compute("Add", {compute("Add", {product, bias}), residual});
  for (const NamedActivation& activation : kActivations) {
    const Attributes attributes = {
        {"alpha", 0.25F}, {"activation", std::string(activation.name)}, {"activation_params", activation.parameters}};
    for (const std::uint32_t constants : {0U, 2U}) {
      const std::vector<Tensor> inputs = {a, b, bias, residual};
      const KernelNode node = node_of("doppler.MatMul", inputs, attributes, constants);
      EXPECT_LT(relative_difference(run_first(node, inputs), activated(activation, sum)), 1e-4) << activation.name;
    }
  }
}

TEST(AFusedProduct, ReadsTransposedOperandsInPlace) {
  // A is stored as [rows, batch, K] and B as [batch, N, K].
  const Tensor a = drawn({6, 3, 8}, 1), b = drawn({3, 10, 8}, 2);
  const Tensor expected = compute("MatMul", {compute("Transpose", {a}, {{"perm", std::vector<Index>{1, 0, 2}}}),
                                             compute("Transpose", {b}, {{"perm", std::vector<Index>{0, 2, 1}}})});
  const Tensor found = compute("com.microsoft.FusedMatMul", {a, b}, {{"transBatchA", Index{1}}, {"transB", Index{1}}});
  EXPECT_LT(relative_difference(found, expected), kRounding);
}

TEST(Attention, IsSoftmaxOfScaledProductsTimesValues) {
  // Q, K and V come as [batch, rows, heads, depth], as linear layers write them.
  const Tensor q = drawn({2, 5, 3, 8}, 1), k = drawn({2, 7, 3, 8}, 2), v = drawn({2, 7, 3, 4}, 3);
  const Tensor mask = drawn({2, 1, 1, 7}, 4);
  const Attributes heads_first = {{"perm", std::vector<Index>{0, 2, 1, 3}}};
  const Tensor scores = compute("MatMul", {compute("Transpose", {q}, heads_first),
                                           compute("Transpose", {k}, {{"perm", std::vector<Index>{0, 2, 3, 1}}})});
  const Tensor scaled = compute("Add", {compute("Mul", {scores, floats({}, {0.5F})}), mask});
  const Tensor weights = compute("Softmax", {scaled}, {{"axis", Index{-1}}});
  const Tensor expected =
      compute("Transpose", {compute("MatMul", {weights, compute("Transpose", {v}, heads_first)})}, heads_first);
  const std::vector<Index> order = {0, 2, 1, 3};
  const Tensor found =
      compute("doppler.Attention", {q, k, v, mask},
              {{"scale", 0.5F}, {"perm_q", order}, {"perm_k", order}, {"perm_v", order}, {"perm_out", order}});
  EXPECT_LT(relative_difference(found, expected), kRounding);
}

TEST(SkipLayerNormalization, NormalisesTheSumAndGivesIt) {
  const Tensor x = drawn({3, 16}, 1), skip = drawn({3, 16}, 2), scale = drawn({16}, 3), bias = drawn({16}, 4);
  const std::vector<Tensor> inputs = {x, skip, scale, bias};
  KernelNode node = node_of("doppler.SkipLayerNormalization", inputs, {{"epsilon", 1e-5F}});
  node.outputs_used = {true, true};
  const std::vector<Tensor> found = run_node(node, inputs);
  const Tensor sum = compute("Add", {x, skip});
  EXPECT_EQ(relative_difference(found[1], sum), 0);
  EXPECT_LT(relative_difference(found[0], compute("LayerNormalization", {sum, scale, bias}, {{"epsilon", 1e-5F}})),
            1e-6);
}

TEST(AKernel, ComputesHalfPrecisionInSingle) {
  const Tensor a = drawn({4, 64}, 1), b = drawn({64, 8}, 2);
  const Attributes to_half = {{"to", static_cast<Index>(Element::f16)}};
  const Tensor found = compute("MatMul", {compute("Cast", {a}, to_half), compute("Cast", {b}, to_half)});
  EXPECT_EQ(found.type.element, Element::f16);
  // Inputs and output are rounded to 11 bits.
  EXPECT_LT(relative_difference(compute("Cast", {found}, {{"to", Index{1}}}), compute("MatMul", {a, b})), 2e-3);
}

TEST(AKernel, GivesTheSameOnTwoThreadsAtOnce) {
  const Tensor x = drawn({1, 32, 20, 20}, 1), w = drawn({32, 32, 3, 3}, 2);
  const std::vector<Tensor> inputs = {x, w};
  const std::unique_ptr<NodeKernel> kernel = kernel_library().make(node_of("Conv", inputs, {}, 2));
  const Tensor expected = run_first(node_of("Conv", inputs, {}, 2), inputs);
  std::array<double, 2> worst = {0, 0};
  const auto work = [&](std::size_t number) {
    Tensor out(kernel->outputs()[0]);
    const AlignedBytes scratch(std::max<std::size_t>(1, kernel->scratch_bytes()));
    const std::array<const std::byte*, 2> from = {x.data.get(), w.data.get()};
    const std::array<std::byte*, 1> to = {out.data.get()};
    for (int i = 0; i < 20; ++i) {
      kernel->run(from, to, scratch.data());
      worst[number] = std::max(worst[number], relative_difference(out, expected));
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(worst[0], 0);
  EXPECT_EQ(worst[1], 0);
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

TEST(AKernel, UsesTheThreadThatRunsItAndNoOther) {
  // Some primitives remember how many threads there were when they were made, and start as many. A thread that has used
  // no kernel before knows nothing yet of the limit that kernels set.
  const Tensor x = drawn({1, 3, 64, 64}, 1), w = drawn({16, 3, 3, 3}, 2);
  std::size_t before = 0, after = 0;
  std::thread([&] {
    before = threads_of_process();
    KernelNode node = node_of("Conv", {x, w}, {{"strides", std::vector<Index>{2, 2}}}, 0);
    const std::unique_ptr<NodeKernel> kernel = kernel_library().make(node);
    run_kernel(*kernel, {x.data.get(), w.data.get()});
    after = threads_of_process();
  }).join();
  EXPECT_EQ(after, before);
}

TEST(PackedWeights, AreSharedByKernelsOfTheSameWeights) {
  const Tensor w = drawn({32, 64, 3, 3}, 1), whole = drawn({1, 64, 16, 16}, 2), half = drawn({1, 64, 8, 16}, 3);
  const std::unique_ptr<PackedWeights> packed = kernel_library().make_packed_weights();
  const auto make = [&](const Tensor& x) {
    KernelNode node = node_of("Conv", {x, w}, {}, 0);
    node.inputs[1].constant = &w;
    node.inputs[0].type->layout = Layout::channels_last;
    node.output_layouts = {Layout::channels_last};
    return kernel_library().make(node, packed.get());
  };
  const auto first = make(whole);
  const std::size_t bytes = packed->bytes();
  EXPECT_GE(bytes, w.type.bytes());
  const auto second = make(whole);
  EXPECT_EQ(packed->bytes(), bytes);
}

// ---- what bad nodes get ----

std::string refusal(const std::string& op, const std::vector<Tensor>& inputs, Attributes attributes = {}) {
  try {
    compute(op, inputs, std::move(attributes));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ABadNode, IsRefusedWithItsNameBeforeAnythingRuns) {
  const Tensor x = drawn({2, 3, 4}, 1);
  using List = std::vector<Index>;
  EXPECT_EQ(refusal("Softmax", {x}, {{"axis", Index{3}}}),
            "node 'n' (Softmax): found axis 3 of a tensor of 3 dimensions; required one of its axes");
  EXPECT_EQ(refusal("Add", {x, drawn({5}, 2)}),
            "node 'n' (Add): found shapes [2, 3, 4] and [5]; required ones that can be broadcast");
  EXPECT_EQ(refusal("MatMul", {x, drawn({5, 2}, 2)}),
            "node 'n' (MatMul): found a product of [2, 3, 4] and [5, 2]; required sizes that fit");
  EXPECT_EQ(refusal("Transpose", {x}, {{"perm", List{0, 0, 1}}}),
            "node 'n' (Transpose): found axes [0, 0, 1]; required each once");
  EXPECT_EQ(refusal("Transpose", {x}, {{"perm", 1.0F}}),
            "node 'n' (Transpose): attribute 'perm': found another type; required integers");
  EXPECT_EQ(refusal("Reshape", {x, integers({2}, {5, -1})}),
            "node 'n' (Reshape): found shape [5, 4] for [2, 3, 4]; required as many elements");
  EXPECT_EQ(
      refusal("Expand", {x, integers({4}, {1000000000, 1000000000, 3, 4})}),
      "node 'n' (Expand): found shape [1000000000, 1000000000, 3, 4]; required at most 62500000000000000 elements");
  EXPECT_EQ(refusal("ConstantOfShape", {integers({3}, {1000000000, 1000000000, 1000000000})}),
            "node 'n' (ConstantOfShape): found shape [1000000000, 1000000000, 1000000000]; required at most "
            "62500000000000000 elements");
  EXPECT_EQ(refusal("Conv", {drawn({1, 4, 5, 5}, 1), drawn({8, 3, 3, 3}, 2)}),
            "node 'n' (Conv): found 1 groups, data of [1, 4, 5, 5] and weights of [8, 3, 3, 3]; required channels that "
            "fit");
  EXPECT_EQ(refusal("MaxPool", {drawn({1, 4, 5, 5}, 1)}, {{"kernel_shape", List{9, 9}}}),
            "node 'n' (MaxPool): found a window of [9, 9] over [5, 5]; required one that fits");
  EXPECT_EQ(refusal("NoSuch", {x}), "node 'n' (NoSuch): found no kernel for the operator; required one that has");
  EXPECT_EQ(refusal("Relu", {}), "node 'n' (Relu): found 0 inputs; required 1");
  EXPECT_EQ(
      refusal("doppler.Conv", {drawn({1, 4, 5, 5}, 1), drawn({8, 4, 3, 3}, 2)}, {{"activation", std::string("Swoosh")}})
          .substr(0, 50),
      "node 'n' (doppler.Conv): found activation 'Swoosh'");
}

TEST(ABadIndex, IsRefusedWhereItIsMet) {
  const Tensor x = drawn({4, 3}, 1);
  EXPECT_EQ(refusal("Gather", {x, integers({2}, {0, 4})}),
            "node 'n' (Gather): found index 4; required one from -4 to 3");
  EXPECT_EQ(refusal("GatherElements", {x, integers({1, 3}, {0, -5, 1})}),
            "node 'n' (GatherElements): found index -5; required one from -4 to 3");
  EXPECT_EQ(refusal("GatherND", {x, integers({1, 2}, {1, 3})}),
            "node 'n' (GatherND): found index 3; required one from -3 to 2");
  EXPECT_EQ(refusal("ScatterND", {x, integers({1, 1}, {9}), drawn({1, 3}, 2)}),
            "node 'n' (ScatterND): found index 9; required one from -4 to 3");
  EXPECT_EQ(refusal("ScatterElements", {x, integers({1, 1}, {9}), drawn({1, 1}, 2)}),
            "node 'n' (ScatterElements): found index 9; required one from -4 to 3");
}

TEST(AShapeThatDependsOnData, NeedsAConstant) {
  const std::vector<Tensor> inputs = {drawn({2, 3}, 1), integers({1}, {6})};
  const KernelNode node = node_of("Reshape", inputs, {}, 1);
  EXPECT_TRUE(kernel_library().needs_value(node, 1));
  EXPECT_FALSE(kernel_library().needs_value(node, 0));
  EXPECT_THROW(kernel_library().make(node), InputError);
}

TEST(ATensorFile, ReturnsWhatWasWritten) {
  const Tensor x = drawn({2, 3}, 7);
  const Tensor read = parse_tensor_pb("x.pb", to_tensor_pb(x, "x"));
  EXPECT_EQ(read.type, x.type);
  EXPECT_EQ(relative_difference(read, x), 0);
  EXPECT_THROW(parse_tensor_pb("x.pb", "\xff\xff no protobuf"), InputError);
}

}  // namespace
}  // namespace doppler::test
