#include "doppler/program/onnx/zoo/zoo.h"

#include <algorithm>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <set>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/import.h"

namespace doppler::program {
namespace {

std::string make(std::string_view name, const ZooSizes& sizes = {}) {
  for (const ZooModel& model : zoo())
    if (model.name == name) return model.make(sizes);
  throw InternalError("no such model");
}

onnx::ModelProto parsed(const std::string& bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

// Elements of everything that is fed beside the data.
double weights_of(const onnx::ModelProto& model) {
  const std::set<std::string> data = {"input", "input_ids", "token_type_ids"};
  double sum = 0;
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (data.contains(input.name())) continue;
    double elements = 1;
    for (const auto& dim : input.type().tensor_type().shape().dim()) elements *= static_cast<double>(dim.dim_value());
    sum += elements;
  }
  return sum;
}

struct Known {
  const char* name;
  double parameters;  // as published
  double normalised;  // channels that are normalised: two parameters each, and two that are no parameters
  double gigamacs;    // as published, in the digits that are
  double half_of_digit;
};

class AZooModel : public testing::TestWithParam<Known> {};

TEST_P(AZooModel, IsValidAndHasThePublishedParametersAndArithmetic) {
  const Known& known = GetParam();
  const std::string bytes = make(known.name, {.batch_norm = true});
  const onnx::ModelProto model = parsed(bytes);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_EQ(weights_of(model), known.parameters + 2 * known.normalised);
  const ImportedModel imported = import_onnx("m", bytes);
  EXPECT_TRUE(imported.warnings.empty());
  EXPECT_NEAR(imported.totals.macs / 1e9, known.gigamacs, known.half_of_digit);
}

TEST_P(AZooModel, HasNormalisationsInItsConvolutionsUnlessAskedNotTo) {
  const Known& known = GetParam();
  // Scale and shift of a channel become one bias.
  EXPECT_EQ(weights_of(parsed(make(known.name))), known.parameters - known.normalised);
}

// Parameters and MACs of the first four are those of torchvision 0.14, of Inception-V3 without its auxiliary
// classifier; BERT's are those of bert-base-uncased with its pooler, LLaMA's those of the 7B model. The arithmetic of
// the last two follows from their sizes. BERT has 12 layers on 128 tokens: products of 128 · (4 · 768² + 2 · 768 ·
// 3072) and attention of 2 · 128² · 768 each: 11.17 G. LLaMA has 32 layers on 512 tokens: 512 · (4 · 4096² + 3 · 4096 ·
// 11008) and 2 · 512² · 4096 each, and 512 · 4096 · 32000 at the end: 3451.5 G.
INSTANTIATE_TEST_SUITE_P(Models, AZooModel,
                         testing::Values(Known{"resnet50", 25'557'032, 26'560, 4.09, 0.005},
                                         Known{"inception-v3", 23'834'568, 17'216, 5.71, 0.005},
                                         Known{"mobilenet-v3", 5'483'032, 12'200, 0.217, 0.0005},
                                         Known{"vit-b16", 86'567'656, 0, 17.56, 0.005},
                                         Known{"bert-base", 109'482'240, 0, 11.17, 0.005},
                                         Known{"llama-decoder", 6'738'415'616, 0, 3451.5, 0.05}),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

const ZooSizes kSmallBert{
    .sequence = 8, .layers = 2, .width = 32, .heads = 4, .hidden = 64, .vocabulary = 50, .weights = 7};

TEST(AZooModelWithWeights, IsTheSameForTheSameSeedAndAnotherForAnother) {
  ZooSizes other = kSmallBert;
  other.weights = 8;
  EXPECT_EQ(make("bert-base", kSmallBert), make("bert-base", kSmallBert));
  EXPECT_NE(make("bert-base", kSmallBert), make("bert-base", other));
}

TEST(AZooModelWithWeights, NeedsNoOtherInputsThanTheData) {
  const onnx::ModelProto model = parsed(make("bert-base", kSmallBert));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_EQ(model.graph().input_size(), 2);
  EXPECT_EQ(weights_of(model), 0);
}

TEST(AZooModelWithWeights, IsRefusedWhereItsFileWouldBeTooLarge) {
  // The first matrix has 32768² · 4 bytes, which are 4 GiB.
  const ZooSizes large{
      .sequence = 8, .layers = 1, .width = 1 << 15, .heads = 64, .hidden = 64, .vocabulary = 10, .weights = 0};
  EXPECT_THROW(make("llama-decoder", large), InputError);
  // The mask has 24000² · 4 bytes, which are 2.3 GB, whatever becomes of the weights.
  EXPECT_THROW(make("llama-decoder", {.sequence = 24'000, .width = 64, .heads = 2}), InputError);
}

TEST(AZooModel, NamesNodesAndParametersAsPyTorchDoes) {
  const onnx::ModelProto model = parsed(make("resnet50"));
  std::set<std::string> nodes, inputs;
  for (const onnx::NodeProto& node : model.graph().node()) EXPECT_TRUE(nodes.insert(node.name()).second) << node.name();
  for (const onnx::ValueInfoProto& input : model.graph().input()) inputs.insert(input.name());
  EXPECT_TRUE(nodes.contains("/layer1/layer1.0/conv1/Conv"));
  EXPECT_TRUE(nodes.contains("/layer3/layer3.5/Relu_2"));
  EXPECT_TRUE(nodes.contains("/layer2/layer2.0/downsample/downsample.0/Conv"));
  EXPECT_TRUE(inputs.contains("layer1.0.conv1.weight"));
  EXPECT_TRUE(inputs.contains("fc.bias"));
}

TEST(AZooModel, RefusesSizesThatDoNotFit) {
  EXPECT_THROW(make("vit-b16", {.image = 100}), InputError);                    // patches of 16
  EXPECT_THROW(make("bert-base", {.width = 100, .heads = 12}), InputError);     // 12 does not divide 100
  EXPECT_THROW(make("llama-decoder", {.width = 96, .heads = 32}), InputError);  // 3 per head cannot be halved
  EXPECT_THROW(make("inception-v3", {.image = 50}), InputError);
}

}  // namespace
}  // namespace doppler::program
