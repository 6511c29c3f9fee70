#include <algorithm>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/graph/formats/native_json.h"
#include "doppler/program/expr/program.h"
#include "doppler/program/onnx/import.h"
#include "tests/program/onnx/model_builder.h"

namespace doppler::program {
namespace {

using Span = Stencil::Span;

Rect region(const Stencil& stencil, const Shape& input, const Shape& output, const Rect& block) {
  Program p;
  const Expr x = p.input("x", input);
  const Expr y = p.stencil({x}, output, DType::f32, stencil, "y");
  return operand_region(p.node(y.id), 0, input, block);
}

TEST(AStencil, OfAConvolutionReadsItsBlockWithAHalo) {
  // 3 wide, stride 2, padding 1: output [2, 4) centres on inputs 4 and 6 and sees [3, 8).
  const Stencil conv{
      .kind = "conv", .operands = {{Span{.axis = 0, .step = 2, .offset = -1, .extent = 3}}}, .most_pieces = {4}};
  EXPECT_EQ(region(conv, {8}, {4}, {{2}, {4}}), (Rect{{3}, {8}}));
  EXPECT_EQ(region(conv, {8}, {4}, {{0}, {1}}), (Rect{{0}, {2}}));  // the padding is not read
}

TEST(AStencil, OfAReshapeRoundsOutwards) {
  // [12, 64] <- [768]: heads [3, 6) are elements [192, 384).
  const Stencil split{
      .kind = "view", .operands = {{Span{.axis = 0, .step = 64, .extent = 64}}}, .most_pieces = {12, 1}};
  EXPECT_EQ(region(split, {768}, {12, 64}, {{3, 0}, {6, 64}}), (Rect{{192}, {384}}));
  // [768] <- [12, 64]: elements [100, 200) touch heads 1, 2 and 3.
  const Stencil merge{
      .kind = "view", .operands = {{Span{.axis = 0, .extent = 1, .divisor = 64}, Span{}}}, .most_pieces = {768}};
  EXPECT_EQ(region(merge, {12, 64}, {768}, {{100}, {200}}), (Rect{{1, 0}, {4, 64}}));
}

TEST(AStencil, KeepsItsArithmeticHoweverItIsCut) {
  Program p;
  const Expr x = p.input("x", {8, 6});
  const Expr y =
      p.stencil({x}, {8, 6}, DType::f32,
                {.kind = "softmax", .operands = {{Span::along(0), Span{}}}, .most_pieces = {8, 1}, .flops = 240}, "y");
  Plan plan = uncut(p);
  plan[y.id] = {4, 1};
  const Graph graph = lower(p, plan).graph;
  ASSERT_EQ(graph.op_count(), 4u);
  EXPECT_EQ(graph.flops(0), 60);
  plan[y.id] = {1, 2};  // along the rows that belong together
  EXPECT_THROW(lower(p, plan), InputError);
}

TEST(AView, IsNoOpAndItsReadersReadThroughIt) {
  Program p;
  const Expr x = p.input("x", {4, 4});
  const auto along = [](std::size_t n) {
    std::vector<Span> spans;
    for (std::size_t i = 0; i < n; ++i) spans.push_back(Span::along(i));
    return spans;
  };
  const Expr a =
      p.stencil({x}, {4, 4}, DType::f32, {.kind = "Relu", .operands = {along(2)}, .most_pieces = {4, 4}}, "a");
  Stencil flatten{
      .kind = "Reshape", .operands = {{Span{.axis = 0, .extent = 1, .divisor = 4}, Span{}}}, .most_pieces = {16}};
  flatten.view = true;
  const Expr v = p.stencil({a}, {16}, DType::f32, flatten, "v");
  const Expr b = p.stencil({v}, {16}, DType::f32, {.kind = "Exp", .operands = {along(1)}, .most_pieces = {16}}, "b");
  Plan plan = uncut(p);
  plan[a.id] = {2, 1};
  plan[b.id] = {2};
  const Graph graph = lower(p, plan).graph;
  // Rows [0, 2) are elements [0, 8): each half of the second op reads one half of the first, 32 bytes.
  ASSERT_EQ(graph.op_count(), 4u);
  EXPECT_EQ(graph.edge_count(), 2u);
  EXPECT_EQ(graph.bytes(0), 32u);
}

ImportedModel cut(const std::string& content, Index parts) {
  return import_onnx("m", content, {.shard = parts, .decompose = {.parts = parts}});
}

double flops_of(const Graph& graph) {
  double total = 0;
  for (OpId op = 0; op < graph.op_count(); ++op) total += graph.flops(op);
  return total;
}

TEST(AShardedTransformer, IsFineGrainedAndDoesTheSameWork) {
  const std::string content = transformer_export(2, 8, 64, 128, 4);
  const ImportedModel whole = import_onnx("m", content), fine = cut(content, 4);
  EXPECT_GT(fine.graph.op_count(), 3 * whole.graph.op_count());
  // A sum of k products takes k-1 additions; by formula it is k. The longest sum has 512 terms, the shortest 32, and
  // partial sums are added up in formations: 3 % covers both.
  EXPECT_NEAR(flops_of(fine.graph), flops_of(whole.graph), 0.03 * flops_of(whole.graph));
  std::size_t products = 0;
  for (OpId op = 0; op < fine.graph.op_count(); ++op) products += fine.graph.kind(op) == "matmul";
  EXPECT_GE(products, 4u * 2 * 8);  // eight products a layer, in four blocks
}

TEST(AShardedModel, HasTheSameOpsEveryTime) {
  const std::string content = transformer_export(1, 4, 32, 64, 4);
  EXPECT_EQ(graph_to_json(cut(content, 4).graph), graph_to_json(cut(content, 4).graph));
}

TEST(AShardedModel, CutsConvolutions) {
  ModelBuilder b;
  b.input("x", {1, 64, 56, 56}).weight("w", {64, 64, 3, 3}).output("y");
  set_ints(b.node("Conv", {"x", "w"}, {"y"}), "pads", {1, 1, 1, 1});
  const ImportedModel fine = cut(b.bytes(), 4);
  ASSERT_EQ(fine.graph.op_count(), 4u);
  EXPECT_EQ(flops_of(fine.graph), fine.totals.flops);
}

TEST(AShardedModel, KeepsWholeWhatHasNoBlocks) {
  ModelBuilder b;
  b.input("x", {16, 8, 64}).weight("w", {1, 256, 64}).weight("r", {1, 256, 64}).weight("m", {64, 512}).output("z");
  set_int(b.node("LSTM", {"x", "w", "r"}, {"y", "h", "c"}, "lstm"), "hidden_size", 64);
  b.node("MatMul", {"h", "m"}, {"z"}, "product");
  b.node("Relu", {"y"}, {"u"}, "relu");
  const ImportedModel fine = cut(b.bytes(), 2);
  const Graph& graph = fine.graph;
  const OpId lstm = graph.op_by_name("lstm[0]");
  // What the product reads is the last state [1, 8, 64] alone, not all the states beside it.
  Bytes to_product = 0, to_relu = 0;
  for (const TensorId tensor : graph.outputs(lstm))
    for (const OpId reader : graph.consumers(tensor)) {
      Bytes& total = graph.kind(reader) == "matmul" ? to_product : to_relu;
      total = std::max(total, graph.bytes(tensor));
    }
  EXPECT_EQ(to_product, 4u * 8 * 64);
  EXPECT_EQ(to_relu, 4u * 16 * 8 * 64);
}

TEST(AShardedModel, DoesNotCountAProductThatIsWholeTwice) {
  // Without a cut along the summed dimension there is nothing to form.
  ModelBuilder b;
  b.input("x", {4096, 64}).weight("w", {64, 64}).output("y");
  b.node("MatMul", {"x", "w"}, {"y"});
  const Graph graph = cut(b.bytes(), 4).graph;
  for (OpId op = 0; op < graph.op_count(); ++op) EXPECT_EQ(graph.kind(op), "matmul");
}

}  // namespace
}  // namespace doppler::program
