// ONNX models run by the engine, compared with what the same kernels give node by node on one thread.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/engine/threads/threads_executor.h"
#include "doppler/kernels/onnx/model_kernels.h"
#include "doppler/kernels/onnx/model_values.h"
#include "doppler/load.h"
#include "doppler/machine.h"
#include "doppler/program/onnx/tensor_file.h"
#include "doppler/program/onnx/zoo/zoo.h"
#include "tests/engine/models/processors.h"

namespace doppler {
namespace {

using model::Tensor;
using model::Value;
using program::Index;
using program::ZooSizes;

// Kernels may add up in any order, and fused ones round less often.
constexpr double kTolerance = 1e-4;

std::string generate(std::string_view name, const ZooSizes& sizes) {
  for (const program::ZooModel& model : program::zoo())
    if (model.name == name) return model.make(sizes);
  throw InternalError("no such model");
}

struct Case {
  std::string name;
  ZooSizes sizes;
  friend std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }
};

ZooSizes pictures(Index image) { return {.image = image, .batch_norm = true, .weights = 1}; }
const ZooSizes kText = {
    .sequence = 16, .layers = 2, .width = 64, .heads = 4, .hidden = 96, .vocabulary = 50, .weights = 1};
const ZooSizes kVision = {.image = 64, .layers = 2, .width = 64, .heads = 4, .hidden = 96, .weights = 1};

Problem load(const std::string& content, DeviceId devices, bool rewrite) {
  const Machine machine = test::processors(devices);
  const LoadOptions options{.rewrite = rewrite, .runnable = true};
  return make_problem(parse_graph_file("model.onnx", content, &machine, options), machine, options);
}

Problem load_cut(const std::string& content, DeviceId devices, std::uint32_t parts, bool rewrite = true) {
  const Machine machine = test::processors(devices, Links::shared);
  const LoadOptions options{.shard = parts, .rewrite = rewrite, .runnable = true};
  return make_problem(parse_graph_file("model.onnx", content, &machine, options), machine, options);
}

std::vector<Value> run(const Problem& problem, const Placement& placement) {
  ThreadsExecutor executor(problem, {.library = &model::kernel_library(), .deterministic = true});
  return executor.compute_model(placement);
}

Placement random_placement(const Problem& problem, std::uint64_t seed) {
  Rng rng(seed);
  Placement placement;
  for (OpId op = 0; op < problem.op_count(); ++op) placement.device_of_op.push_back(rng.below(problem.device_count()));
  return placement;
}

Placement on_one(const Problem& problem) { return {std::vector<DeviceId>(problem.op_count(), 0), {}, {}}; }

double relative_error(const Tensor& ours, const Tensor& theirs) {
  EXPECT_EQ(ours.type, theirs.type);
  double scale = 1e-30, worst = 0;
  for (Index i = 0; i < theirs.type.count(); ++i) {
    scale = std::max(scale, std::abs(static_cast<double>(theirs.as<float>()[i])));
    worst = std::max(worst, std::abs(static_cast<double>(ours.as<float>()[i]) - theirs.as<float>()[i]));
    EXPECT_FALSE(std::isnan(ours.as<float>()[i]));
  }
  return worst / scale;
}

class AModel : public testing::TestWithParam<Case> {
 protected:
  std::string content_ = generate(GetParam().name, GetParam().sizes);

  // The model node by node, as the file has them and every tensor row-major, with the inputs that the engine draws.
  std::vector<Value> truth() const {
    const Problem problem = load(content_, 1, false);
    const std::vector<Value> resident = resident_values(*problem.model(), {}, 0, model::kernel_library());
    std::map<std::string, Value> inputs;
    for (model::ValueIndex i = 0; i < resident.size(); ++i)
      if (problem.model()->values[i].origin == model::RunnableModel::Origin::input)
        inputs[problem.model()->values[i].name] = resident[i];
    return model::kernel_library().run_model(model::parse_model_body("model.onnx", content_), inputs);
  }
};

TEST_P(AModel, ComputesTheSameWhenItIsRewrittenAndPlacedAnywhere) {
  const std::vector<Value> expected = truth();
  ASSERT_FALSE(expected.empty());
  for (const bool rewrite : {false, true}) {
    const Problem problem = load(content_, 2, rewrite);
    for (const std::uint64_t seed : {1, 2, 3}) {
      const std::vector<Value> found = run(problem, random_placement(problem, seed));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_LE(relative_error(found[i].tensor, expected[i].tensor), kTolerance)
            << "rewritten: " << rewrite << ", seed " << seed << ", output " << i;
    }
  }
}

TEST_P(AModel, GivesTheSameBitsAtEveryPlacement) {
  const Problem problem = load(content_, 2, true);
  const std::vector<Value> one = run(problem, on_one(problem)), two = run(problem, random_placement(problem, 7));
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(std::memcmp(one[i].tensor.data.get(), two[i].tensor.data.get(), one[i].tensor.type.bytes()), 0);
}

TEST_P(AModel, ComputesTheSameInBlocksThatAreAnywhere) {
  const std::vector<Value> expected = truth();
  for (const std::uint32_t parts : {2, 8}) {
    const Problem problem = load_cut(content_, 2, parts);
    EXPECT_GT(problem.op_count(), load(content_, 2, true).op_count()) << "nothing was cut";
    const Placement placement = random_placement(problem, parts);
    ThreadsExecutor executor(problem, {.library = &model::kernel_library(), .deterministic = true});
    const std::vector<Value> found = executor.compute_model(placement), again = executor.compute_model(placement);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_LE(relative_error(found[i].tensor, expected[i].tensor), kTolerance) << parts << " blocks, output " << i;
      EXPECT_EQ(std::memcmp(found[i].tensor.data.get(), again[i].tensor.data.get(), found[i].tensor.type.bytes()), 0);
    }
  }
  const Problem plain = load_cut(content_, 2, 2, false);
  const std::vector<Value> found = run(plain, random_placement(plain, 5));
  EXPECT_LE(relative_error(found[0].tensor, expected[0].tensor), kTolerance) << "as the file has its nodes";
}

TEST_P(AModel, ComputesProductsAndWindowsByOneDnnAndNeverByItsReference) {
  const Problem problem = load(content_, 1, true);
  const model::ModelKernels kernels(problem.model(), problem.graph(), model::kernel_library());
  std::size_t products = 0;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const std::string& type = problem.model()->ops[op].node.op_type;
    const std::string how = kernels.implementation(op);
    EXPECT_EQ(how.find("ref"), std::string::npos) << type << " by " << how;
    if (type != "Conv" && type != "MatMul" && type != "Gemm" && !type.ends_with("ePool") && type != "MaxPool") continue;
    if (type.starts_with("Global")) continue;  // a sum
    ++products;
    EXPECT_TRUE(how.starts_with("onednn ")) << problem.graph().name(op) << ": " << type << " by " << how;
  }
  EXPECT_GT(products, 8U);
}

INSTANTIATE_TEST_SUITE_P(OfTheZoo, AModel,
                         testing::Values(Case{"resnet50", pictures(64)}, Case{"inception-v3", pictures(96)},
                                         Case{"mobilenet-v3", pictures(64)}, Case{"vit-b16", kVision},
                                         Case{"bert-base", kText}, Case{"llama-decoder", kText}),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(AModelWithoutWeights, IsRunWithWeightsThatAreDrawn) {
  ZooSizes sizes = pictures(64);
  sizes.weights.reset();
  const Problem problem = load(generate("resnet50", sizes), 2, true);
  const std::vector<Value> results = run(problem, random_placement(problem, 1));
  ASSERT_EQ(results.size(), 1U);
  for (Index i = 0; i < results[0].tensor.type.count(); ++i)
    EXPECT_TRUE(std::isfinite(results[0].tensor.as<float>()[i]));
}

TEST(AModelThatRuns, TakesGivenInputs) {
  const Problem problem = load(generate("bert-base", kText), 1, true);
  Tensor tokens(model::Element::i64, {1, 16});
  for (Index i = 0; i < 16; ++i) tokens.as<std::int64_t>()[i] = i;
  const auto with = [&](const Tensor& given) {
    ThreadsExecutor executor(problem, {.tensors = {{"input_ids", given}}, .library = &model::kernel_library()});
    return executor.compute_model(on_one(problem))[0].tensor;
  };
  EXPECT_GT(relative_error(with(tokens), run(problem, on_one(problem))[0].tensor), 1e-2);
  EXPECT_THROW(with(Tensor(model::Element::i64, {1, 17})), InputError);
  EXPECT_THROW(with(Tensor(model::Element::f32, {1, 16})), InputError);
  // An index beyond the vocabulary of 50 is the data's fault.
  tokens.as<std::int64_t>()[3] = 1000;
  EXPECT_THROW(with(tokens), InputError);
}

}  // namespace
}  // namespace doppler
