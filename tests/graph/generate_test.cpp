#include "doppler/graph/generate.h"

#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/graph/formats/native_json.h"
#include "doppler/graph/levels.h"

namespace doppler {
namespace {

// One way to call every generator.
using Generate = std::function<Graph(OpId ops, std::uint64_t seed, const GeneratedCosts& costs)>;

template <typename Options>
Generate with(Graph (*generate)(const Options&)) {
  return [generate](OpId ops, std::uint64_t seed, const GeneratedCosts& costs) {
    Options options;
    options.ops = ops;
    options.seed = seed;
    options.costs = costs;
    return generate(options);
  };
}

const std::map<std::string, Generate> kGenerators = {{"layered", with(generate_layered)},
                                                     {"random", with(generate_random)},
                                                     {"series_parallel", with(generate_series_parallel)},
                                                     {"chain_of_blocks", with(generate_chain_of_blocks)}};

class AGenerator : public testing::TestWithParam<std::string> {
 protected:
  static Graph generate(OpId ops, std::uint64_t seed = 1, const GeneratedCosts& costs = {}) {
    return kGenerators.at(GetParam())(ops, seed, costs);
  }
};

TEST_P(AGenerator, GivesExactlyTheRequestedOps) {
  // From 5 on every default degree is possible; 14 and 15 are the first whole block of a chain and one more.
  for (const OpId ops : {5u, 13u, 14u, 15u, 100u, 997u}) {
    const Graph graph = generate(ops);
    EXPECT_EQ(graph.op_count(), ops);
    EXPECT_EQ(graph.tensor_count(), ops);
  }
}

TEST_P(AGenerator, NumbersOpsTopologically) {
  const Graph graph = generate(500);
  EXPECT_GT(graph.edge_count(), 0u);
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    for (const OpId consumer : graph.consumers(tensor)) EXPECT_LT(graph.producer(tensor), consumer);
}

TEST_P(AGenerator, GivesTheSameGraphForTheSameSeedOnly) {
  EXPECT_EQ(graph_to_json(generate(300, 7)), graph_to_json(generate(300, 7)));
  EXPECT_NE(graph_to_json(generate(300, 7)), graph_to_json(generate(300, 8)));
}

TEST_P(AGenerator, MeetsMeanFlopsAndCommunicationRatio) {
  GeneratedCosts costs;
  costs.mean_flops = 5e9;
  costs.spread = 0.8;
  costs.communication_ratio = 0.25;
  costs.reference_flops_per_second = 2e12;
  costs.reference_bytes_per_second = 5e9;
  const Graph graph = generate(20'000, 3, costs);
  double flops = 0, moved = 0;
  for (OpId op = 0; op < graph.op_count(); ++op) flops += graph.flops(op);
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    moved += static_cast<double>(graph.bytes(tensor)) * static_cast<double>(graph.consumers(tensor).size());
  // The mean of 20 000 log-normal numbers (s = 0.8, relative deviation sqrt(exp(s²) - 1) = 0.95) is within
  // 0.95 / 141 = 0.7 % of the true mean, one standard error; five of them are allowed.
  constexpr double kSampling = 0.034;
  EXPECT_NEAR(flops / graph.op_count() / 5e9, 1, kSampling);
  // The ratio holds for the drawn numbers; only rounding to whole bytes is left.
  constexpr double kRounding = 1e-5;
  EXPECT_NEAR(moved / 5e9 / (flops / 2e12) / 0.25, 1, kRounding);
}

TEST_P(AGenerator, GivesMemoryTrafficThatFitsTheTensors) {
  const Graph graph = generate(200);
  for (OpId op = 0; op < graph.op_count(); ++op) {
    Bytes read = 0, written = 0;
    for (const TensorId tensor : graph.inputs(op)) read += graph.bytes(tensor);
    for (const TensorId tensor : graph.outputs(op)) written += graph.bytes(tensor);
    EXPECT_EQ(graph.bytes_read(op), read);
    EXPECT_EQ(graph.bytes_written(op), written);
  }
}

TEST_P(AGenerator, RefusesCostsOutOfRange) {
  GeneratedCosts costs;
  costs.spread = -1;
  EXPECT_THROW(generate(100, 1, costs), InputError);
  costs = {};
  costs.communication_ratio = std::nan("");
  EXPECT_THROW(generate(100, 1, costs), InputError);
  costs = {};
  costs.mean_flops = 0;
  EXPECT_THROW(generate(100, 1, costs), InputError);
  EXPECT_THROW(generate(0), InputError);
}

INSTANTIATE_TEST_SUITE_P(All, AGenerator,
                         testing::Values("layered", "random", "series_parallel", "chain_of_blocks"),
                         [](const auto& test) { return test.param; });

TEST(Layered, ReadsOnlyFromTheLayerBefore) {
  LayeredOptions options;
  options.ops = 2000;
  const Graph graph = generate_layered(options);
  const auto depth = depths(graph);
  for (OpId op = 0; op < graph.op_count(); ++op)
    for (const TensorId tensor : graph.inputs(op)) EXPECT_EQ(depth[graph.producer(tensor)] + 1, depth[op]);
}

TEST(Layered, HasTheRequestedWidthAndDegree) {
  LayeredOptions options;
  options.ops = 50'000;
  options.width = 100;
  options.degree = 3.5;
  const Graph graph = generate_layered(options);
  const auto depth = depths(graph);
  const double layers = *std::max_element(depth.begin(), depth.end()) + 1.0;
  // About 500 layers of 100 ± 57 ops: the mean is within 2.6 % (one standard error); four are allowed. Layers
  // of fewer ops than an op wants inputs are rare at this width and lower the degree by less than 2 %.
  EXPECT_NEAR(options.ops / layers / 100, 1, 0.1);
  EXPECT_NEAR(static_cast<double>(graph.edge_count()) / options.ops / 3.5, 1, 0.03);
}

TEST(Random, HasTheRequestedDegree) {
  // 100 000 expected edges, deviation sqrt(100 000) = 316; five deviations are 1.6 %.
  RandomOptions options;
  options.ops = 20'000;
  options.degree = 5;
  EXPECT_NEAR(static_cast<double>(generate_random(options).edge_count()), 100'000, 1'600);
}

TEST(Random, MayBeCompleteOrEmpty) {
  RandomOptions options;
  options.ops = 9;
  options.degree = 4;  // 36 pairs over 9 ops
  EXPECT_EQ(generate_random(options).edge_count(), 36u);
  options.degree = 0;
  EXPECT_EQ(generate_random(options).edge_count(), 0u);
  options.degree = 4.1;
  EXPECT_THROW(generate_random(options), InputError);
}

TEST(SeriesParallel, HasOneSourceAndOneSink) {
  const Graph graph = generate_series_parallel({});
  OpId sources = 0, sinks = 0;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    sources += graph.inputs(op).empty();
    sinks += graph.consumers(op).empty();  // tensor id = op id
  }
  EXPECT_EQ(sources, 1u);
  EXPECT_EQ(sinks, 1u);
}

TEST(SeriesParallel, IsAChainWithoutParallelSteps) {
  SeriesParallelOptions options;
  options.ops = 50;
  options.parallel = 0;
  EXPECT_EQ(depths(generate_series_parallel(options)).back(), 49u);
}

TEST(ChainOfBlocks, RepeatsForkAndJoin) {
  // Blocks of 1 + 2·2 + 1 = 6 ops: 0 | 1 2 | 3 4 | 5, 6 | 7 8 | 9 10 | 11; one op is left over.
  ChainOfBlocksOptions options;
  options.ops = 13;
  options.width = 2;
  options.depth = 2;
  const Graph graph = generate_chain_of_blocks(options);
  const auto readers = [&](OpId op) {
    const auto consumers = graph.consumers(op);
    return std::vector<OpId>(consumers.begin(), consumers.end());
  };
  EXPECT_EQ(readers(0), (std::vector<OpId>{5, 1, 3}));
  EXPECT_EQ(readers(1), (std::vector<OpId>{2}));
  EXPECT_EQ(readers(4), (std::vector<OpId>{5}));
  EXPECT_EQ(readers(5), (std::vector<OpId>{6}));
  EXPECT_EQ(readers(11), (std::vector<OpId>{12}));
  EXPECT_EQ(graph.kind(0), "norm");
  EXPECT_EQ(graph.kind(2), "matmul");
  EXPECT_EQ(graph.kind(5), "add");
}

TEST(AGeneratedGraph, OfOneOpIsPossible) {
  for (const auto& [name, generate] : kGenerators) {
    if (name == "random") continue;  // degree 2 needs five ops
    EXPECT_EQ(generate(1, 0, {}).op_count(), 1u) << name;
    EXPECT_EQ(generate(2, 0, {}).op_count(), 2u) << name;
  }
  RandomOptions options;
  options.ops = 1;
  EXPECT_EQ(generate_random(options).op_count(), 1u);
}

}  // namespace
}  // namespace doppler
