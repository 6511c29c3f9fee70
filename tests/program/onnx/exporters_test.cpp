#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/program/onnx/import.h"
#include "tests/program/onnx/model_builder.h"

// What exporters other than the one of ../shared/data/onnx write: old and new operator sets, narrow types, quantised
// models, operators of ONNX Runtime.
namespace doppler::program {
namespace {

namespace fs = std::filesystem;
using onnx::TensorProto;

ImportedModel import(const ModelBuilder& model) { return import_onnx("m", model.bytes()); }

class EveryOperatorSet : public testing::TestWithParam<int> {};

TEST_P(EveryOperatorSet, GivesTheSameCosts) {
  ModelBuilder b(GetParam());
  b.input("x", {2, 3, 4, 4}).weight("w", {3, 3, 1, 1}).weight("s", {3}).weight("half", {3, 1, 1}).output("y");
  b.node("Conv", {"x", "w"}, {"c"});
  b.node("BatchNormalization", {"c", "s", "s", "s", "s"}, {"n"});
  b.node("Mul", {"n", "half"}, {"h"});
  b.node("Relu", {"h"}, {"r"});
  onnx::NodeProto& mean = b.node("ReduceMean", {"r"}, {"m"});
  if (GetParam() < 18) {
    set_ints(mean, "axes", {2, 3});
  } else {  // an attribute became an input
    b.integers("axes", {2, 3});
    mean.add_input("axes");
  }
  onnx::NodeProto& squeeze = b.node("Squeeze", {"m"}, {"q"});
  if (GetParam() < 13) {
    set_ints(squeeze, "axes", {2, 3});
  } else {
    b.integers("last", {2, 3});
    squeeze.add_input("last");
  }
  set_int(b.node("Softmax", {"q"}, {"y"}), "axis", 1);
  const ImportedModel model = import(b);
  EXPECT_EQ(model.totals.macs, 2 * 3 * 16 * 3);
  EXPECT_EQ(model.totals.flops, 2 * model.totals.macs + 96 * (2 + 1 + 1 + 1) + 6 * 5);
  EXPECT_TRUE(model.warnings.empty());
}

INSTANTIATE_TEST_SUITE_P(From7, EveryOperatorSet, testing::Values(7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22));

TEST(OperatorSetsBeyondLibonnx, AreReadWithTheirNewAttributes) {
  ModelBuilder b(20);
  b.input("x", {1, 2, 4, 4}).integers("sizes", {1, 2, 8, 8}).integers("axes", {-1}).output("y");
  onnx::NodeProto& resize = b.node("Resize", {"x", "", "", "sizes"}, {"r"});
  set_int(resize, "antialias", 0);
  set_string(resize, "mode", "nearest");
  onnx::NodeProto& split = b.node("Split", {"r"}, {"a", "b"});
  set_int(split, "axis", 1);
  set_int(split, "num_outputs", 2);
  b.node("Gelu", {"a"}, {"g"});
  b.node("ReduceMax", {"g", "axes"}, {"m"});
  b.node("Add", {"m", "b"}, {"y"});
  const ImportedModel model = import(b);
  // Gelu 5 on 64 elements, a maximum over 64, a sum that broadcasts to 64.
  EXPECT_EQ(model.totals.flops, 64 * (5 + 1 + 1));
  EXPECT_TRUE(model.warnings.empty());
}

TEST(HalfPrecision, HalvesBytesAndNamesItsType) {
  for (const auto& [element, name] :
       {std::pair<int, const char*>{TensorProto::FLOAT16, "f16"}, {TensorProto::BFLOAT16, "bf16"}}) {
    ModelBuilder b;
    b.input("x", {4, 8}, element).weight("w", {8, 2}, element, 2).output("y");
    b.node("MatMul", {"x", "w"}, {"y"});
    const ImportedModel model = import(b);
    EXPECT_EQ(model.graph.dtype(0), name);
    EXPECT_EQ(model.totals.parameter_bytes, 32u);
    EXPECT_EQ(model.graph.bytes(0), 16u);
    EXPECT_GT(import_onnx("m", b.bytes(), {.shard = 2, .decompose = {.parts = 2}}).graph.op_count(), 0u);
  }
}

TEST(AQuantisedModel, HoldsItsWeightsNarrow) {
  ModelBuilder b;
  b.input("x", {4, 8}).weight("w", {8, 2}, TensorProto::INT8, 1).weight("s", {}).weight("z", {}, TensorProto::INT8, 1);
  b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  b.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  b.node("DequantizeLinear", {"w", "s", "z"}, {"f"});  // of a weight: where it is used, not in the schedule
  b.node("MatMul", {"d", "f"}, {"y"});
  b.output("y");
  const ImportedModel model = import(b);
  ASSERT_EQ(model.graph.op_count(), 3u);
  EXPECT_EQ(model.graph.parameter_bytes(2), 16u + 4 + 1);  // with scale and zero point
  EXPECT_EQ(model.totals.macs, 4 * 8 * 2);
}

TEST(AQuantisedModel, CountsIntegerProducts) {
  ModelBuilder b;
  const int u8 = TensorProto::UINT8;
  b.input("x", {1, 2, 4, 4}, u8).input("a", {4, 8}, u8).weight("w", {3, 2, 3, 3}, u8, 1).weight("m", {8, 2}, u8, 1);
  b.weight("s", {}).weight("z", {}, u8, 1).output("c").output("i").output("q");
  b.node("ConvInteger", {"x", "w", "z", "z"}, {"c"});
  b.node("MatMulInteger", {"a", "m", "z", "z"}, {"i"});
  b.node("QLinearMatMul", {"a", "s", "z", "m", "s", "z", "s", "z"}, {"q"});
  b.node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z"}, {"l"});
  const ImportedModel model = import(b);
  EXPECT_EQ(model.totals.macs, 2 * (3 * 4 * 18) + 2 * (4 * 8 * 2));
  EXPECT_EQ(model.graph.dtype(0), "u8");
  EXPECT_TRUE(model.warnings.empty());
}

TEST(OperatorsOfOnnxRuntime, HaveShapesAndCosts) {
  ModelBuilder b;
  b.import("com.microsoft", 1);
  b.input("x", {1, 4, 8}).input("y", {1, 4, 8}).weight("g", {8}).weight("w", {8, 24}).weight("p", {8, 16});
  b.weight("packed", {16, 1, 4}, TensorProto::UINT8, 1).weight("scales", {16}).output("n");
  b.node_of("com.microsoft", "SkipLayerNormalization", {"x", "y", "g", "g"}, {"s"});
  b.node_of("com.microsoft", "Attention", {"s", "w"}, {"a"});
  b.node_of("com.microsoft", "FusedMatMul", {"a", "p"}, {"f"});
  b.node_of("com.microsoft", "BiasGelu", {"f", "g16"}, {"e"});
  b.weight("g16", {16});
  onnx::NodeProto& bits = b.node("MatMulNBits", {"e", "packed", "scales"}, {"n"});
  bits.set_domain("com.microsoft");
  set_int(bits, "N", 16);
  const ImportedModel model = import(b);
  // Attention: 4 positions through 8·24, then scores and values of 4·4·8 each; then 4·8·16 and 4·16·16.
  EXPECT_EQ(model.totals.macs, 4 * 8 * 24 + 2 * 4 * 4 * 8 + 4 * 8 * 16 + 4 * 16 * 16);
  EXPECT_TRUE(model.warnings.empty());
}

TEST(AnUnknownDomain, CostsBytesIfItsShapesAreDeclared) {
  ModelBuilder b;
  b.import("org.example", 3);
  b.input("x", {4}).output("y");
  b.node_of("org.example", "Magic", {"x"}, {"t"});
  ModelBuilder::describe(*b.graph().add_value_info(), "t", {6});
  b.node("Relu", {"t"}, {"y"});
  const ImportedModel model = import(b);
  EXPECT_EQ(model.graph.bytes_written(0), 24u);
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_NE(model.warnings[0].find("'org.example.Magic' (1)"), std::string::npos);
}

TEST(NodesInAnyOrder, AreSorted) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  b.node("Relu", {"t"}, {"y"});
  b.node("Exp", {"x"}, {"t"});
  EXPECT_EQ(import(b).graph.kind(0), "Exp");
}

TEST(SequencesAndOptionalOutputs, AreNoObstacle) {
  ModelBuilder b;
  b.input("x", {6, 2}).integers("sizes", {2, 2, 2}).output("y");
  b.node("SplitToSequence", {"x", "sizes"}, {"s"});
  set_int(b.node("ConcatFromSequence", {"s"}, {"c"}), "axis", 0);
  ModelBuilder::describe(*b.graph().add_value_info(), "c", {6, 2});
  b.node("Dropout", {"c"}, {"d"});
  b.node("Relu", {"d"}, {"y"});
  EXPECT_EQ(import(b).totals.flops, 12);
}

TEST(EverySmallModel, IsReadWholeAndCut) {
  for (const auto& entry : fs::directory_iterator(fs::path(DOPPLER_TEST_DATA) / "onnx")) {
    SCOPED_TRACE(entry.path());
    const std::string content = read_file(entry.path());
    const bool symbolic = entry.path().filename() == "attention.onnx";
    OnnxOptions options;
    if (symbolic) options.dims["batch"] = 4;
    const ImportedModel whole = import_onnx("m", content, options);
    options.shard = options.decompose.parts = 4;
    const ImportedModel cut = import_onnx("m", content, options);
    EXPECT_GE(cut.graph.op_count(), whole.graph.op_count());
  }
}

// Every file under tests/data/bad_onnx is named by its one defect; beside it stands the text that a user must see.
TEST(EveryBadModel, IsRefusedWithItsMessage) {
  for (const auto& entry : fs::directory_iterator(fs::path(DOPPLER_TEST_DATA) / "bad_onnx")) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path());
    const std::string content = read_file(entry.path());
    EXPECT_TRUE(looks_like_onnx(content));
    try {
      import_onnx(entry.path().filename(), content);
      ADD_FAILURE() << "read without an error";
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()) + "\n", read_file(entry.path().string() + ".expected"));
    }
  }
}

TEST(AModelCutShortAnywhere, IsRefusedOrSmaller) {
  const std::string content = read_file(std::string(DOPPLER_TEST_DATA) + "/onnx/conv.onnx");
  for (std::size_t size = 0; size < content.size(); ++size) {
    try {
      import_onnx("m", std::string_view(content).substr(0, size));
    } catch (const InputError&) {
    }
  }
}

// The operator tests of ONNX itself, where Debian's libonnx-testdata is installed.
TEST(OnnxsOwnTestModels, AreReadOrRefusedInOneLine) {
  const fs::path root = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(root)) GTEST_SKIP() << root << " is absent: the package libonnx-testdata is not installed";
  std::size_t read = 0, refused = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string content = read_file(entry.path());
    for (const Index parts : {0, 2}) {
      try {
        import_onnx("m", content, {.shard = parts, .decompose = {.parts = parts}});
        ++read;
      } catch (const InputError& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
  // What is refused computes on constants alone or has shapes that depend on data.
  EXPECT_GT(read, 12 * refused);
}

}  // namespace
}  // namespace doppler::program
