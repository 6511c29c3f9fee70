#include "doppler/program/onnx/operators.h"

#include <set>

#include <gtest/gtest.h>

namespace doppler::program {
namespace {

onnx::NodeProto node_of(std::string_view name) {
  constexpr std::string_view kRuntime = "com.microsoft.";
  onnx::NodeProto node;
  const bool fused = name.starts_with(kRuntime);
  if (fused) node.set_domain("com.microsoft");
  node.set_op_type(std::string(fused ? name.substr(kRuntime.size()) : name));
  return node;
}

TEST(TheOperatorTable, HasOneRowPerOperatorAndFindsIt) {
  std::set<std::string_view> names;
  for (const Operator* row : all_operators()) {
    EXPECT_TRUE(names.insert(row->name).second) << row->name;
    EXPECT_EQ(&operator_of(node_of(row->name)), row) << row->name;
    EXPECT_NE(row->is, OperatorClass::unknown) << row->name;
  }
  onnx::NodeProto spelt_out = node_of("Conv");
  spelt_out.set_domain("ai.onnx");
  EXPECT_EQ(operator_of(spelt_out).name, "Conv");
}

TEST(TheOperatorTable, HasNoRulesForWhatItDoesNotKnow) {
  onnx::NodeProto foreign = node_of("Conv");
  foreign.set_domain("my.own");
  for (const onnx::NodeProto& node : {node_of("Conf"), foreign, node_of("")}) {
    const Operator& row = operator_of(node);
    EXPECT_EQ(row.is, OperatorClass::unknown);
    EXPECT_TRUE(row.shape == nullptr && row.cost == nullptr && row.cut == nullptr && row.fold == nullptr);
    EXPECT_FALSE(is_view(row, node, {}));
    EXPECT_EQ(kind_of(row, node), operator_name(node));
  }
}

TEST(TheOperatorTable, CutsAndCostsEveryElementwiseOperatorAndNoControlFlow) {
  for (const Operator* row : all_operators()) {
    const bool elementwise = row->is == OperatorClass::elementwise && row->cost != nullptr;
    EXPECT_TRUE(!elementwise || row->cut != nullptr) << row->name;
    const bool control =
        row->is == OperatorClass::branch || row->is == OperatorClass::loop || row->is == OperatorClass::scan;
    EXPECT_TRUE(!control || (row->cost == nullptr && row->cut == nullptr && row->fold == nullptr)) << row->name;
  }
}

// The standard operators without a row work on text, or are written out by exporters.
TEST(TheOperatorTable, KnowsTheTensorOperatorsOfTheStandard) {
  const std::set<std::string> absent = {"StringNormalizer", "TfIdfVectorizer", "MelWeightMatrix", "SequenceMap"};
  std::set<std::string> missing;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas())
    if (schema.domain().empty() && operator_of(node_of(schema.Name())).is == OperatorClass::unknown)
      missing.insert(schema.Name());
  for (const std::string& name : absent) missing.erase(name);
  EXPECT_EQ(missing, std::set<std::string>());
}

}  // namespace
}  // namespace doppler::program
