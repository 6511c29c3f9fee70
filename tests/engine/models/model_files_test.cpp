// Models as people have them: with weights in other files, with shapes that the model computes, with control flow.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/engine/threads/threads_executor.h"
#include "doppler/kernels/onnx/tensor_npy.h"
#include "doppler/load.h"
#include "doppler/machine.h"
#include "tests/engine/models/processors.h"
#include "tests/program/onnx/model_builder.h"

namespace doppler {
namespace {

using model::Tensor;
using program::Index;
using program::ModelBuilder;

using Inputs = std::map<std::string, Tensor>;

std::vector<model::Value> run_file(const std::filesystem::path& path, Inputs inputs, LoadOptions options = {}) {
  constexpr DeviceId kDevices = 2;
  const Machine machine = test::processors(kDevices);
  options.rewrite = options.runnable = true;
  const Problem problem = make_problem(read_graph_file(path.string(), &machine, options), machine, options);
  ThreadsExecutor executor(problem, {.tensors = std::move(inputs), .library = &model::kernel_library()});
  Placement placement;
  for (OpId op = 0; op < problem.op_count(); ++op) placement.device_of_op.push_back(op % kDevices);
  return executor.compute_model(placement);
}

Tensor floats(program::Shape shape, const std::vector<float>& values) {
  Tensor tensor(model::Element::f32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

std::vector<float> values_of(const model::Value& value) {
  return {value.tensor.as<float>(), value.tensor.as<float>() + value.tensor.type.count()};
}

// Runs a model of one output with its nodes on two devices in turn.
std::vector<float> run_built(const ModelBuilder& builder, Inputs inputs) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / fmt::format("built_{}.onnx", getpid());
  std::ofstream(path, std::ios::binary) << builder.bytes();
  const std::vector<float> values = values_of(run_file(path, std::move(inputs))[0]);
  std::filesystem::remove(path);
  return values;
}

// ---- Weights in other files ----

// y = x + w, where w is two floats of a file. Entries are what the model says about that file.
class AModelWithExternalData : public testing::Test {
 protected:
  using Entries = std::map<std::string, std::string>;

  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("external_data_{}", getpid());
    std::filesystem::create_directories(folder_ / "model" / "inner");
    write("model/weights.bin", std::string(kBegin, '\0') + bytes({10, 20}));
    write("model/inner/weights.bin", bytes({30, 40}));
    write("outside.bin", bytes({1, 2}));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string bytes(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }

  std::vector<float> run(const Entries& entries) const {
    ModelBuilder builder;
    builder.input("x", {2}).weight("w", {2}).output("y");
    builder.node("Add", {"x", "w"}, {"y"});
    onnx::TensorProto& tensor = *builder.graph().mutable_initializer(0);
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    write("model/model.onnx", builder.bytes());
    return values_of(run_file(folder_ / "model" / "model.onnx", {{"x", floats({2}, {1, 2})}})[0]);
  }

  void refuses(const std::string& text, const Entries& entries) const {
    try {
      run(entries);
      ADD_FAILURE() << "found no error; required one with '" << text << "'";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("initializer 'w'"), std::string::npos) << error.what();
    }
  }

  static constexpr std::size_t kBegin = 64;
  std::filesystem::path folder_;
};

TEST_F(AModelWithExternalData, ReadsItsWeights) {
  EXPECT_EQ(run({{"location", "weights.bin"}, {"offset", "64"}, {"length", "8"}}), (std::vector<float>{11, 22}));
  EXPECT_EQ(run({{"location", "weights.bin"}, {"offset", "64"}}), (std::vector<float>{11, 22}));
  EXPECT_EQ(run({{"location", "inner/weights.bin"}}), (std::vector<float>{31, 42}));
  EXPECT_EQ(run({{"location", "inner/../weights.bin"}, {"offset", "64"}}), (std::vector<float>{11, 22}));
}

TEST_F(AModelWithExternalData, MayStandInALinkWithinItsFolder) {
  std::filesystem::create_symlink("inner/weights.bin", folder_ / "model" / "link.bin");
  EXPECT_EQ(run({{"location", "link.bin"}}), (std::vector<float>{31, 42}));
}

TEST_F(AModelWithExternalData, IsRefusedOutsideOfItsFolder) {
  const std::string required = "required a file in the folder of the model";
  refuses(required, {{"location", "../outside.bin"}});
  refuses(required, {{"location", "inner/../../outside.bin"}});
  refuses(required, {{"location", (folder_ / "outside.bin").string()}});
  refuses(required, {{"location", (folder_ / "model" / "weights.bin").string()}});
  refuses(required, {{"location", "."}});
  refuses(required, {{"location", ""}});
  refuses(required, {});
  refuses(required, {{"location", std::string("weights.bin\0x", 13)}});
  std::filesystem::create_symlink("../outside.bin", folder_ / "model" / "escape.bin");
  refuses(required, {{"location", "escape.bin"}});
  std::filesystem::create_directory_symlink("..", folder_ / "model" / "up");
  refuses(required, {{"location", "up/outside.bin"}});
}

TEST_F(AModelWithExternalData, IsRefusedWithoutAFileThatCanBeRead) {
  refuses("required a file that can be read", {{"location", "missing.bin"}});
  refuses("not a file", {{"location", "inner"}});
}

TEST_F(AModelWithExternalData, IsRefusedWhereTheFileIsTooShort) {
  // 72 bytes, of which 8 are wanted from byte 65 on.
  refuses("its data is bytes 65 to 73", {{"location", "weights.bin"}, {"offset", "65"}});
  refuses("which has 72; required all of them", {{"location", "weights.bin"}, {"offset", "1000"}});
  refuses("which has 72; required all of them", {{"location", "weights.bin"}, {"offset", "18446744073709551615"}});
  write("model/empty.bin", "");
  refuses("which has 0; required all of them", {{"location", "empty.bin"}});
}

TEST_F(AModelWithExternalData, IsRefusedWhereNumbersAreWrong) {
  refuses("shape and type claim 8 bytes, external data 4", {{"location", "weights.bin"}, {"length", "4"}});
  refuses("external data has offset '-8'", {{"location", "weights.bin"}, {"offset", "-8"}});
  refuses("external data has length '8 '", {{"location", "weights.bin"}, {"length", "8 "}});
  refuses("external data has offset '99999999999999999999'",
          {{"location", "weights.bin"}, {"offset", "99999999999999999999"}});
}

// ---- Weights in the model's own file ----

TEST(AModelWithLargeWeights, ReadsThemWhereTheyLie) {
  // Large enough to stay in the mapped file, and used by two ops, of which one does not pack them.
  constexpr int kSize = 256;
  std::vector<float> weights(std::size_t{kSize} * kSize);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) - 3;
  ModelBuilder builder;
  builder.input("x", {1, kSize}).weight("w", {kSize, kSize}).output("y");
  builder.graph().mutable_initializer(0)->set_raw_data(
      std::string(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)));
  builder.node("MatMul", {"x", "w"}, {"product"});
  builder.node("Add", {"product", "w"}, {"y"});
  Tensor x = floats({1, kSize}, std::vector<float>(kSize, 0));
  x.as<float>()[2] = 1;  // the product is row 2 of the weights
  const std::vector<float> found = run_built(builder, {{"x", x}});
  ASSERT_EQ(found.size(), weights.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], weights[2 * kSize + i % kSize] + weights[i]) << "element " << i;
}

// ---- Shapes that the model computes ----

TEST(ASwinTransformerOfPyTorch, ComputesWhatPyTorchDoes) {
  const std::filesystem::path folder = std::filesystem::path(DOPPLER_TEST_DATA) / "swin";  // export.py made it
  const auto npy = [&](const char* name) {
    const std::string path = (folder / name).string();
    return model::parse_tensor_npy(path, read_file(path));
  };
  LoadOptions options;
  options.dims = {{"batch", 1}};
  const std::vector<float> found =
      values_of(run_file(folder / "model.onnx", {{"input", npy("input.npy")}}, options)[0]);
  const Tensor expected = npy("output.npy");
  ASSERT_EQ(found.size(), static_cast<std::size_t>(expected.type.count()));
  constexpr double kTolerance = 1e-5;  // of sums of tens of products of numbers around 1 in f32
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected.as<float>()[i], kTolerance);
}

// ---- Control flow and recurrent cells ----

void add_output(onnx::GraphProto& graph, const std::string& name, const std::vector<ModelBuilder::Dim>& dims,
                int element = ModelBuilder::kFloat) {
  ModelBuilder::describe(*graph.add_output(), name, dims, element);
}

TEST(AnIf, RunsTheBranchOfItsConditionAndSeesWhatIsAroundIt) {
  const auto run = [](bool condition) {
    ModelBuilder builder;
    builder.input("x", {2}).input("c", {}, onnx::TensorProto::BOOL).output("z");
    builder.node("Neg", {"x"}, {"n"});
    onnx::NodeProto& node = builder.node("If", {"c"}, {"y"});
    onnx::GraphProto& then = program::set_graph(node, "then_branch");
    ModelBuilder::add_node(then, "Add", {"x", "x"}, {"t"});
    add_output(then, "t", {2});
    onnx::GraphProto& otherwise = program::set_graph(node, "else_branch");
    ModelBuilder::add_node(otherwise, "Mul", {"n", "x"}, {"e"});
    add_output(otherwise, "e", {2});
    builder.node("Abs", {"y"}, {"z"});
    Tensor c(model::Element::boolean, {});
    *c.as<std::uint8_t>() = condition ? 1 : 0;
    return run_built(builder, {{"x", floats({2}, {3, -4})}, {"c", c}});
  };
  EXPECT_EQ(run(true), (std::vector<float>{6, 8}));    // |x + x|
  EXPECT_EQ(run(false), (std::vector<float>{9, 16}));  // |−x · x|
}

TEST(ALoop, CarriesItsStateFromTurnToTurn) {
  ModelBuilder builder;
  builder.input("x", {2}).output("z");
  onnx::TensorProto& turns = *builder.graph().add_initializer();
  turns.set_name("turns");
  turns.set_data_type(onnx::TensorProto::INT64);
  turns.add_int64_data(3);
  onnx::NodeProto& node = builder.node("Loop", {"turns", "", "x"}, {"y"});
  onnx::GraphProto& body = program::set_graph(node, "body");
  ModelBuilder::describe(*body.add_input(), "i", {}, onnx::TensorProto::INT64);
  ModelBuilder::describe(*body.add_input(), "go", {}, onnx::TensorProto::BOOL);
  ModelBuilder::describe(*body.add_input(), "state", {2});
  ModelBuilder::add_node(body, "Identity", {"go"}, {"still"});
  ModelBuilder::add_node(body, "Add", {"state", "x"}, {"next"});
  add_output(body, "still", {}, onnx::TensorProto::BOOL);
  add_output(body, "next", {2});
  builder.node("Neg", {"y"}, {"z"});
  EXPECT_EQ(run_built(builder, {{"x", floats({2}, {1, 5})}}), (std::vector<float>{-4, -20}));  // −(x + 3 x)
}

TEST(AScan, RunsAlongItsInputAndKeepsEveryState) {
  ModelBuilder builder;
  builder.input("x", {3, 2}).weight("zero", {2}).output("z");
  onnx::NodeProto& node = builder.node("Scan", {"zero", "x"}, {"last", "sums"});
  program::set_int(node, "num_scan_inputs", 1);
  onnx::GraphProto& body = program::set_graph(node, "body");
  ModelBuilder::describe(*body.add_input(), "sum", {2});
  ModelBuilder::describe(*body.add_input(), "row", {2});
  ModelBuilder::add_node(body, "Add", {"sum", "row"}, {"next"});
  ModelBuilder::add_node(body, "Identity", {"next"}, {"kept"});
  add_output(body, "next", {2});
  add_output(body, "kept", {2});
  builder.node("Add", {"sums", "last"}, {"z"});
  // Sums down the rows are 1 2, 4 6, 9 12; the last of them is added to each.
  EXPECT_EQ(run_built(builder, {{"x", floats({3, 2}, {1, 2, 3, 4, 5, 6})}}),
            (std::vector<float>{10, 14, 13, 18, 18, 24}));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One unit, one step, weights of 1 for every gate and no bias: X is [1, 1, 1] and the state before it is 0.
ModelBuilder cell(const std::string& type, int gates) {
  ModelBuilder builder(14);
  builder.input("x", {1, 1, 1}).weight("w", {1, gates, 1}).weight("r", {1, gates, 1}).output("z");
  for (int i : {0, 1}) {
    const std::vector<float> ones(static_cast<std::size_t>(gates), 1);
    builder.graph().mutable_initializer(i)->set_raw_data(
        std::string(reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float)));
  }
  program::set_int(builder.node(type, {"x", "w", "r"}, {"y", "h"}), "hidden_size", 1);
  builder.node("Add", {"h", "h"}, {"z"});
  return builder;
}

TEST(ARecurrentCell, RunsByTheEngine) {
  const double x = 0.5;
  const Inputs inputs = {{"x", floats({1, 1, 1}, {0.5F})}};
  constexpr double kTolerance = 1e-6;
  // LSTM: c = i · tanh(x), h = o · tanh(c), with i = o = sigmoid(x), as the forget gate meets a state of 0.
  const double c = sigmoid(x) * std::tanh(x);
  EXPECT_NEAR(run_built(cell("LSTM", 4), inputs)[0], 2 * sigmoid(x) * std::tanh(c), kTolerance);
  // GRU: h = (1 − z) · tanh(x) with z = sigmoid(x).
  EXPECT_NEAR(run_built(cell("GRU", 3), inputs)[0], 2 * (1 - sigmoid(x)) * std::tanh(x), kTolerance);
  EXPECT_NEAR(run_built(cell("RNN", 1), inputs)[0], 2 * std::tanh(x), kTolerance);
}

// ---- What cannot run ----

TEST(AModelWithOperatorsThatHaveNoKernel, IsRefusedWithAllOfThemAtOnce) {
  ModelBuilder builder;
  builder.input("x", {2}).output("c").import("ours", 1);
  for (const auto& [from, type, to] :
       {std::tuple("x", "Frobnicate", "a"), std::tuple("a", "Twist", "b"), std::tuple("b", "Frobnicate", "c")}) {
    builder.node_of("ours", type, {from}, {to});
    ModelBuilder::describe(*builder.graph().add_value_info(), to, {2});
  }
  try {
    run_built(builder, {});
    FAIL() << "found no error";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("found operators without kernels: 'ours.Frobnicate' (node 'a' and 1 more), 'ours.Twist' (node "
                        "'b'); required those of docs/models.md"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace doppler
