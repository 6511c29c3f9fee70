#include "doppler/program/expr/program.h"

#include "tests/program/support.h"

namespace doppler::program {
namespace {

TEST(AProgram, ChecksSizesAndNamesTheExpressionTheLabelAndBothSizes) {
  Program p;
  const Expr x = p.input("x", {4, 5}), w = p.weight("w", {6, 7});
  EXPECT_EQ(message_of([&] {
              p.einsum("ij,jk->ik", {x, w}, {.name = "y"});
            }),
            "einsum 'y' of 'x', 'w': label 'j' is 5 in 'x' and 6 in 'w'; required one size per label");
  EXPECT_EQ(message_of([&] {
              p.einsum("ijk,jk->ik", {x, w});
            }),
            "einsum of 'x', 'w': 'x' has rank 2 and 3 labels; required one label per dimension");
  EXPECT_EQ(message_of([&] { p.einsum("ij->ijk", {x}); }),
            "einsum of 'x': label 'k' is in no input; required a size for it");
  EXPECT_EQ(message_of([&] { p.einsum("ii->i", {x}); }),
            "einsum of 'x': label 'i' stands twice in 'x'; required different labels");
  EXPECT_EQ(message_of([&] { p.einsum("ij", {x}); }), "einsum 'ij': found no '->'; required e.g. 'ij,jk->ik'");
  EXPECT_EQ(message_of([&] { p.einsum("ij->ij", {x}, {.aggregate = Aggregate::max}); }),
            "einsum of 'x': found an aggregation over no label; required a reduced label");
}

TEST(AProgram, ChecksDTypes) {
  Program p;
  const Expr x = p.input("x", {4}, DType::f16), y = p.input("y", {4}, DType::f32);
  EXPECT_EQ(message_of([&] { x + y; }),
            "einsum of 'x', 'y': found f16 and f32 in one operation; required one dtype, or a conversion");
  EXPECT_EQ((p.convert(x, DType::f32) + y).dtype(), DType::f32);
  EXPECT_EQ(p.convert(y, DType::f32).id, y.id);
}

TEST(AProgram, ChecksTheOtherKinds) {
  Program p;
  const Expr x = p.input("x", {4, 3});
  EXPECT_EQ(message_of([&] {
              p.select(x, {{0, 0}, {5, 3}});
            }),
            "select of 'x': found the rectangle [0, 0] to [5, 3]; required a part of shape [4, 3]");
  EXPECT_EQ(message_of([&] {
              p.concat({x, p.input("z", {4, 2})}, 0);
            }),
            "concat: 'x' is f32 [4, 3] and 'z' is f32 [4, 2]; required one dtype, and one shape but for axis 0");
  EXPECT_EQ(message_of([&] { p.to_complex(x); }),
            "to_complex of 'x': found f32 [4, 3]; required a real dtype and an even last dimension");
  EXPECT_EQ(message_of([&] {
              p.reshape_ones(x, {3, 4});
            }),
            "squeeze of 'x': found [3, 4] from [4, 3]; required shapes that differ in ones only");
  EXPECT_EQ(message_of([&] { p.input("w", {0}); }), "input 'w': found size 0; required at least 1");
  EXPECT_NE(message_of([&] { p.input("w", {1 << 30, 1 << 30, 1 << 30}); }).find("required at most"), std::string::npos);
}

TEST(AProgram, FormsEveryAggregation) {
  Program p;
  const Expr x = p.input("x", {4, 5}), w = p.weight("w", {5, 7});
  const Expr y = p.einsum("ij,jk->ik", {x, w}, {.name = "y"});
  const Node& formation = p.node(y.id);
  ASSERT_NE(formation.as<Formation>(), nullptr);
  const Node& partial = p.node(formation.inputs[0]);
  EXPECT_EQ(partial.name, "y.partial");
  EXPECT_EQ(kernel_kind(partial), "matmul");
  // Outputs first: i = 0, k = 1, and the reduced j = 2.
  EXPECT_EQ(partial.as<Einsum>()->sizes, (Shape{4, 7, 5}));
  EXPECT_EQ(partial.as<Einsum>()->operands[0], (std::vector<std::uint32_t>{0, 2}));
  // 4·7·5 products and 4·7·4 sums.
  EXPECT_EQ(block_flops(partial, Rect::whole({4, 7, 5})), 140 + 112);
}

TEST(AProgram, ClassifiesItsKernels) {
  Program p;
  const Expr x = p.input("x", {4, 5});
  const auto kind = [&](Expr e) {
    const Node& node = p.node(e.id);
    return kernel_kind(node.as<Formation>() != nullptr ? p.node(node.inputs[0]) : node);
  };
  EXPECT_EQ(kind(p.einsum("ij->ji", {x})), "permute");
  EXPECT_EQ(kind(p.einsum("ij->i", {x})), "reduce");
  EXPECT_EQ(kind(p.einsum("ij->ijk", {x}, {.sizes = {{"k", 2}}})), "broadcast");
  EXPECT_EQ(kind(x + x), "elementwise");
  EXPECT_EQ(kind(p.einsum("ij,ik->jk", {x, x})), "matmul");
  EXPECT_EQ(kind(p.einsum("ij,ik->jk", {x, x}, {.aggregate = Aggregate::max})), "einsum");
}

TEST(AProgram, GivesEveryExpressionItsOwnName) {
  Program p;
  const Expr x = p.input("x", {4});
  const Program::Scope scope(p, "layer");
  EXPECT_EQ(p.node(p.map({x}, Scalar::argument(0), "f").id).name, "layer.f");
  EXPECT_EQ(p.node(p.map({x}, Scalar::argument(0), "f").id).name, "layer.f#2");
}

TEST(ABlock, HoldsTheElementsThatItsBoundariesSay) {
  for (const Index size : {1, 7, 12, 100})
    for (Index pieces = 1; pieces <= size; ++pieces)
      for (Index x = 0; x < size; ++x) {
        const Index k = block_of(x, size, pieces);
        EXPECT_LE(block_begin(k, size, pieces), x);
        EXPECT_LT(x, block_begin(k + 1, size, pieces));
      }
}

}  // namespace
}  // namespace doppler::program
