#include "doppler/problem/modules.h"

#include <gtest/gtest.h>

#include "doppler/base/similar.h"
#include "doppler/problem.h"

namespace doppler {
namespace {

Graph graph_named(const std::vector<std::string>& names) {
  GraphBuilder builder("test");
  for (const std::string& name : names) builder.add_op({.name = name, .flops = 1});
  return std::move(builder).build();
}

std::vector<std::string> units(const std::vector<std::string>& names, Granularity granularity) {
  return Modules(graph_named(names)).units(granularity);
}

TEST(Modules, AreReadFromNamesAsPyTorchWritesThem) {
  const Modules modules(graph_named({"/layer1/layer1.0/conv1/Conv", "/fc/Gemm", "Constant_3"}));
  EXPECT_EQ(modules[modules.of(0)].name, "layer1.0.conv1");
  EXPECT_EQ(modules[modules.path(0).front()].name, "layer1");
  EXPECT_EQ(modules[modules.of(1)].name, "fc");
  EXPECT_EQ(modules.of(2), Modules::kNone);
}

TEST(Modules, WithAResidualSumStayWhole) {
  EXPECT_EQ(
      units({"/layers.0/attention/MatMul", "/layers.0/mlp/MatMul", "/layers.0/Add", "/head/Gemm"}, Granularity::module),
      (std::vector<std::string>{"layers.0", "layers.0", "layers.0", "head"}));
}

TEST(Modules, ThatHandDataThroughBlocksAreDivided) {
  // /model/Add is the sum of two embeddings: it belongs to no block, and the blocks need not be where it is.
  EXPECT_EQ(units({"/model/embed/Gather", "/model/Add", "/model/h.0/mlp/MatMul", "/model/h.0/Add",
                   "/model/h.1/mlp/MatMul", "/model/h.1/Add"},
                  Granularity::module),
            (std::vector<std::string>{"model.embed", "", "model.h.0", "model.h.0", "model.h.1", "model.h.1"}));
}

TEST(Modules, CalledTwiceAreOne) {
  EXPECT_EQ(units({"/relu/Relu", "/relu_1/Relu"}, Granularity::module), (std::vector<std::string>{"relu", "relu"}));
  // One that holds a parameter is another module, whatever it is called.
  const std::vector<std::string> parameters = {"conv_1.weight"};
  EXPECT_EQ(Modules(graph_named({"/conv/Conv", "/conv_1/Conv"}), parameters).units(Granularity::module),
            (std::vector<std::string>{"conv", "conv_1"}));
}

TEST(Layers, AreTheOutermostNumberedModules) {
  EXPECT_EQ(
      units({"/enc/blocks.0/convs.0/Conv", "/enc/blocks.0/convs.1/Conv", "/enc/blocks.1/convs.0/Conv", "/norm/Add"},
            Granularity::layer),
      (std::vector<std::string>{"enc.blocks.0", "enc.blocks.0", "enc.blocks.1", "norm"}));
}

TEST(AGraph, JoinsItsGroupsWithLabels) {
  // Ops 0 and 1 are a group of the file; the label joins 1 and 2, hence all three; op 3 stays alone.
  GraphBuilder builder("test");
  builder.add_op({.name = "a", .flops = 1, .group = "file"});
  builder.add_op({.name = "b", .flops = 1, .group = "file"});
  builder.add_op({.name = "c", .flops = 1});
  builder.add_op({.name = "d", .flops = 1});
  const std::vector<std::string> labels = {"", "unit", "unit", ""};
  const Graph grouped = std::move(builder).build().grouped_by(labels);
  EXPECT_EQ(grouped.group(0), grouped.group(2));
  EXPECT_EQ(grouped.group(1), grouped.group(2));
  EXPECT_EQ(grouped.group(3), Graph::kNoGroup);
  EXPECT_EQ(grouped.group_count(), 1u);
}

TEST(AFingerprint, TellsGraphsOfOtherOpsOrEdgesApart) {
  const auto chain = [](bool reversed, double flops) {
    GraphBuilder builder("test");
    builder.add_op({.name = "a", .flops = flops});
    builder.add_op({.name = "b", .flops = flops});
    builder.add_consumer(builder.add_tensor(reversed ? 1 : 0, 8), reversed ? 0 : 1);
    return std::move(builder).build().fingerprint();
  };
  EXPECT_EQ(chain(false, 1), chain(false, 2));
  EXPECT_NE(chain(false, 1), chain(true, 1));
  EXPECT_NE(chain(false, 1), graph_named({"a", "b"}).fingerprint());
}

TEST(SimilarWords, AreFoundByFewEdits) {
  const std::vector<std::string> names = {"heft", "metis", "single", "vit-b16"};
  EXPECT_EQ(did_you_mean("hefd", names), "; did you mean 'heft'?");
  EXPECT_EQ(did_you_mean("ehft", names), "; did you mean 'heft'?");  // a swap is one edit
  EXPECT_EQ(did_you_mean("vitb16", names), "; did you mean 'vit-b16'?");
  EXPECT_EQ(did_you_mean("annealing", names), "");
}

TEST(APattern, MatchesAnyTextAtItsStars) {
  EXPECT_TRUE(matches("*conv1*", "/layer1/conv1/Conv"));
  EXPECT_TRUE(matches("layers.?", "layers.3"));
  EXPECT_FALSE(matches("layers.?", "layers.13"));
  EXPECT_FALSE(matches("a*b", "abc"));
}

}  // namespace
}  // namespace doppler
