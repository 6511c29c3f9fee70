#include "doppler/program/onnx/rewrite/rewrite.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "doppler/program/onnx/import.h"
#include "doppler/program/onnx/rewrite/rewriting.h"
#include "doppler/program/onnx/zoo/zoo.h"
#include "model_builder.h"

namespace doppler::program {
namespace {

// A model after rewriting, and how often the pass whose name contains a word found something.
struct Outcome {
  onnx::ModelProto model;
  Rewritten rewritten;

  std::size_t found(const std::string& word) const {
    for (const RewriteCount& pass : rewritten.passes)
      if (pass.pass.find(word) != std::string::npos) return pass.found;
    ADD_FAILURE() << "no pass is about " << word;
    return 0;
  }
  // The nodes that depend on data.
  std::vector<const onnx::NodeProto*> nodes(const std::string& op = {}) const {
    std::vector<const onnx::NodeProto*> result;
    for (const onnx::NodeProto& node : model.graph().node())
      if (!node.name().starts_with("doppler/") && (op.empty() || operator_name(node) == op)) result.push_back(&node);
    return result;
  }
};

std::string generate_model(std::string_view name, const ZooSizes& sizes) {
  for (const ZooModel& model : zoo())
    if (model.name == name) return model.make(sizes);
  ADD_FAILURE() << "the zoo has no " << name;
  return {};
}

Outcome rewritten(const ModelBuilder& builder) {
  Reading reading = read_model("model", builder.bytes(), {});
  Outcome outcome;
  outcome.rewritten = rewrite(reading);
  outcome.model = reading.model;
  // What comes out can be read, and has the same results.
  const Reading again = read_again("model", outcome.model, {}, reading.weights);
  EXPECT_EQ(again.outputs.size(), static_cast<std::size_t>(outcome.model.graph().output_size()));
  return outcome;
}

ModelBuilder& scalar(ModelBuilder& builder, const std::string& name, float value) {
  auto* tensor = builder.graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_float_data(value);
  return builder;
}

ModelBuilder convolution_then(const std::string& op) {
  ModelBuilder builder;
  builder.input("x", {1, 3, 8, 8}).weight("w", {16, 3, 3, 3});
  set_ints(builder.node("Conv", {"x", "w"}, {"c"}), "pads", {1, 1, 1, 1});
  builder.node(op, {"c"}, {"y"});
  builder.output("y");
  return builder;
}

TEST(ARewrite, PutsAnActivationIntoItsConvolution) {
  const Outcome outcome = rewritten(convolution_then("Relu"));
  EXPECT_EQ(outcome.found("bias, residual"), 1U);
  ASSERT_EQ(outcome.nodes().size(), 1U);
  const onnx::NodeProto& node = *outcome.nodes()[0];
  EXPECT_EQ(operator_name(node), "doppler.Conv");
  EXPECT_EQ(string_attribute(node, "activation", ""), "Relu");
  EXPECT_EQ(ints_attribute(node, "pads"), (std::vector<Index>{1, 1, 1, 1}));
  EXPECT_EQ(node.output(0), "y");
  EXPECT_EQ(outcome.rewritten.place, (std::vector<int>{0, 0}));
}

TEST(ARewrite, LeavesATensorAloneThatSomebodyElseReads) {
  ModelBuilder builder = convolution_then("Relu");
  builder.output("c");
  EXPECT_EQ(rewritten(builder).nodes().size(), 2U);
}

TEST(ARewrite, FoldsABatchNormalisationIntoTheWeights) {
  ModelBuilder builder;
  builder.input("x", {1, 3, 8, 8}).weight("w", {16, 3, 1, 1});
  for (const char* name : {"scale", "shift", "mean", "variance"}) builder.weight(name, {16});
  builder.node("Conv", {"x", "w"}, {"c"});
  builder.node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, {"n"});
  builder.node("Relu", {"n"}, {"y"});
  builder.output("y");
  const Outcome outcome = rewritten(builder);
  EXPECT_EQ(outcome.found("batch"), 1U);
  ASSERT_EQ(outcome.nodes().size(), 1U);  // the rest depends on no data
  EXPECT_EQ(outcome.nodes()[0]->input_size(), 3);
}

TEST(ARewrite, AddsAResidualBeforeTheActivation) {
  ModelBuilder builder;
  builder.input("x", {1, 16, 8, 8}).weight("w", {16, 16, 1, 1});
  builder.node("Conv", {"x", "w"}, {"c"});
  builder.node("Add", {"x", "c"}, {"s"});
  builder.node("Relu", {"s"}, {"y"});
  builder.output("y");
  const Outcome outcome = rewritten(builder);
  ASSERT_EQ(outcome.nodes().size(), 1U);
  EXPECT_EQ(outcome.nodes()[0]->input(2), "");
  EXPECT_EQ(outcome.nodes()[0]->input(3), "x");
}

TEST(ARewrite, MakesALinearLayerOfProductBiasAndGelu) {
  ModelBuilder builder(17);
  builder.input("x", {1, 8, 32}).weight("w", {32, 64}).weight("b", {64});
  scalar(scalar(scalar(builder, "root", 1.41421356F), "one", 1), "half", 0.5F);
  builder.node("MatMul", {"x", "w"}, {"p"});
  builder.node("Add", {"b", "p"}, {"z"});
  builder.node("Div", {"z", "root"}, {"d"});
  builder.node("Erf", {"d"}, {"e"});
  builder.node("Add", {"e", "one"}, {"f"});
  builder.node("Mul", {"z", "f"}, {"g"});
  builder.node("Mul", {"g", "half"}, {"y"});
  builder.output("y");
  const Outcome outcome = rewritten(builder);
  EXPECT_EQ(outcome.found("activations"), 1U);
  ASSERT_EQ(outcome.nodes().size(), 1U);
  EXPECT_EQ(operator_name(*outcome.nodes()[0]), "doppler.MatMul");
  EXPECT_EQ(string_attribute(*outcome.nodes()[0], "activation", ""), "Gelu");
  EXPECT_EQ(outcome.nodes()[0]->input(2), "b");
}

TEST(ARewrite, FindsTheLayerNormalisationOfOldExports) {
  ModelBuilder builder(13);
  builder.input("x", {1, 8, 32}).weight("w", {32}).weight("b", {32});
  scalar(scalar(builder, "two", 2), "epsilon", 1e-5F);
  set_ints(builder.node("ReduceMean", {"x"}, {"m"}), "axes", {-1});
  builder.node("Sub", {"x", "m"}, {"d"});
  builder.node("Pow", {"d", "two"}, {"q"});
  set_ints(builder.node("ReduceMean", {"q"}, {"v"}), "axes", {-1});
  builder.node("Add", {"v", "epsilon"}, {"a"});
  builder.node("Sqrt", {"a"}, {"r"});
  builder.node("Div", {"d", "r"}, {"n"});
  builder.node("Mul", {"n", "w"}, {"s"});
  builder.node("Add", {"s", "b"}, {"y"});
  builder.output("y");
  const Outcome outcome = rewritten(builder);
  EXPECT_EQ(outcome.found("layer"), 1U);
  ASSERT_EQ(outcome.nodes("LayerNormalization").size(), 1U);
  EXPECT_EQ(outcome.nodes().size(), 1U);
  EXPECT_FLOAT_EQ(float_attribute(*outcome.nodes()[0], "epsilon", 0), 1e-5F);
}

TEST(ARewrite, MakesPaddingPartOfTheConvolution) {
  ModelBuilder builder(13);
  builder.input("x", {1, 3, 8, 8}).weight("w", {16, 3, 3, 3}).integers("pads", {0, 0, 1, 2, 0, 0, 3, 4});
  builder.node("Pad", {"x", "pads"}, {"p"});
  builder.node("Conv", {"p", "w"}, {"y"});
  builder.output("y");
  const Outcome outcome = rewritten(builder);
  EXPECT_EQ(outcome.found("padding"), 1U);
  ASSERT_EQ(outcome.nodes().size(), 1U);
  EXPECT_EQ(ints_attribute(*outcome.nodes()[0], "pads"), (std::vector<Index>{1, 2, 3, 4}));
}

TEST(ARewrite, MakesTransposeAndScaleAttributesOfAProduct) {
  ModelBuilder builder(13);
  builder.input("x", {2, 8, 32}).input("z", {2, 4, 32});
  scalar(builder, "s", 4);
  set_ints(builder.node("Transpose", {"z"}, {"t"}), "perm", {0, 2, 1});
  builder.node("MatMul", {"x", "t"}, {"p"});
  builder.node("Div", {"p", "s"}, {"y"});
  builder.output("y");
  const Outcome outcome = rewritten(builder);
  EXPECT_EQ(outcome.found("transposes"), 1U);
  ASSERT_EQ(outcome.nodes().size(), 1U);
  EXPECT_EQ(int_attribute(*outcome.nodes()[0], "transB", 0), 1);
  EXPECT_FLOAT_EQ(float_attribute(*outcome.nodes()[0], "alpha", 0), 0.25F);
}

// Tiny transformers of the zoo: per layer of BERT one attention, and six products with a bias, of which one has a GELU
// and two a residual.
TEST(ARewrite, FindsTheAttentionsOfTransformers) {
  const ZooSizes sizes{.sequence = 8, .layers = 2, .width = 32, .heads = 2, .hidden = 64, .vocabulary = 50};
  Reading reading = read_model("bert", generate_model("bert-base", sizes), {});
  const Rewritten result = rewrite(reading);
  const Reading again = read_again("bert", reading.model, {}, reading.weights);
  std::map<std::string, int> kinds;
  for (const ModelOp& op : again.ops)
    if (!op.view) ++kinds[operator_name(*op.node)];
  EXPECT_EQ(kinds["doppler.Attention"], 2);
  EXPECT_EQ(kinds["Softmax"] + kinds["Transpose"] + kinds["Erf"] + kinds["MatMul"] + kinds["Mul"], 0);
  EXPECT_EQ(kinds["doppler.MatMul"], 2 * 6 + 1);  // and the pooler with its tanh
}

TEST(ARewrite, KeepsTheMultiplyAddsOfTheModel) {
  for (const char* name : {"resnet50", "mobilenet-v3", "vit-b16"}) {
    const std::string content = generate_model(name, {});
    const ImportedModel plain = import_onnx(name, content), fused = import_onnx(name, content, {.rewrite = true});
    EXPECT_DOUBLE_EQ(plain.totals.macs, fused.totals.macs) << name;
    EXPECT_EQ(plain.totals.parameters, fused.totals.parameters) << name;
    EXPECT_LT(fused.graph.op_count(), plain.graph.op_count()) << name;
    EXPECT_EQ(fused.op_of_node.size(), plain.op_of_node.size()) << name;
  }
}

TEST(ARewrite, LeavesOnlyFusedConvolutionsOfResNet) {
  const ImportedModel model = import_onnx("resnet50", generate_model("resnet50", {}), {.rewrite = true});
  // 53 convolutions, two pools and the classifier; ReLU, batch normalisations and residuals are gone.
  EXPECT_EQ(model.graph.op_count(), 53U + 2 + 1);
}

}  // namespace
}  // namespace doppler::program
