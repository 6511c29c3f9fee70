#include "doppler/program/text/ein_text.h"

#include "doppler/program/expr/library.h"
#include "tests/program/support.h"

namespace doppler::program {
namespace {

std::string error_of(const std::string& text) {
  return message_of([&] { parse_ein("m.ein", text); });
}

TEST(AnEinFile, ReadsLikeMathematics) {
  const EinProgram model = parse_ein("m.ein", R"(# a perceptron with a temperature
size b = 4, d = 3, f = 5
input x[b, d] f64
weight w1[d, f] f64   # columns are neurons
weight w2[f, 2] f64
h[b, f] = sum[d] x[b, d] * w1[d, f]
a = gelu(h) - h / 2
y[b, c] = sum[f] (a[b, f] *
                  w2[f, c])
z[b, c] = exp(-y[b, c]^2) + $temperature
top[b] = max[c] if(z[b, c] < 1, z[b, c], max(z[b, c], 2 * z[b, c]))
output z, top
)");
  Program p;
  const Expr x = p.input("x", {4, 3}, DType::f64), w1 = p.weight("w1", {3, 5}, DType::f64),
             w2 = p.weight("w2", {5, 2}, DType::f64);
  const Scalar u = Scalar::argument(0);
  const Expr h = p.einsum("bd,df->bf", {x, w1});
  const Expr y = p.einsum("bf,fc->bc", {p.map({h}, gelu(u) - u / 2), w2});
  const Expr z = p.map({y}, exp(-pow(u, 2)) + Scalar::variable("temperature"));
  const Expr top = p.einsum("bc->b", {z}, {.join = if_less(u, 1, u, maximum(u, 2 * u)), .aggregate = Aggregate::max});

  const Program& q = *model.program;
  ASSERT_EQ(q.size(), p.size());
  for (ExprId id = 0; id < p.size(); ++id) {
    EXPECT_EQ(q.node(id).shape, p.node(id).shape);
    EXPECT_EQ(q.node(id).inputs, p.node(id).inputs);
    ASSERT_EQ(q.node(id).as<Einsum>() == nullptr, p.node(id).as<Einsum>() == nullptr);
    if (q.node(id).as<Einsum>() == nullptr) continue;
    EXPECT_EQ(q.node(id).as<Einsum>()->join, p.node(id).as<Einsum>()->join);
    EXPECT_EQ(q.node(id).as<Einsum>()->operands, p.node(id).as<Einsum>()->operands);
  }
  EXPECT_EQ(q.outputs(), (std::vector<ExprId>{z.id, top.id}));
  EXPECT_EQ(q.weights().size(), 2u);
  EXPECT_EQ(q.node(h.id).name, "h");
}

TEST(AnEinFile, CallsTheLibrary) {
  const EinProgram model = parse_ein("m.ein", R"(
size b = 2, s = 4, h = 2, d = 4
input x[b, s, h, d] f16
weight g[h, d] f16
input table[s, 2] c64
n = rms_norm(x, g, 2)
q = rotary(n, table)
m = causal_mask(s, f16)
a = attention(q, q, n, m)
part = select(a, 0:b, 0:h, 1:s, 0:d)
twice = concat(2, part, part)
pairs = to_complex(twice)
back = to_real(pairs)
wide = convert(back, f32)
one = fill(-0.5, b, h, 6, d)
same = reshape_ones(one, b, 1, h, 6, d)
sum_ = wide + one
p = softmax(sum_)
l = mean_square_error(p, one)
loss l
)");
  const Program& p = *model.program;
  EXPECT_EQ(p.node(*model.loss).shape, Shape{});
  EXPECT_EQ(p.outputs(), std::vector<ExprId>{*model.loss});
  const auto values = evaluate(p, random_inputs(p, 1));
  EXPECT_TRUE(std::isfinite(values[*model.loss].values[0].real()));
}

TEST(AnEinFile, WithoutOutputsReturnsWhatNobodyReads) {
  const EinProgram model = parse_ein("m.ein", "input x[4]\na = exp(x)\nb = log(a)\nc = tanh(a)");
  EXPECT_EQ(model.program->outputs(), (std::vector<ExprId>{2, 3}));
}

TEST(AnEinFile, IsRecognisedByItsFirstWord) {
  EXPECT_TRUE(looks_like_ein("# model\n\n  size b = 3"));
  EXPECT_TRUE(looks_like_ein("input x[3]"));
  EXPECT_FALSE(looks_like_ein("{\"format\": 1}"));
  EXPECT_FALSE(looks_like_ein("inputs 3"));
  EXPECT_FALSE(looks_like_ein("# only a comment"));
  EXPECT_FALSE(looks_like_ein(""));
}

TEST(AnEinFile, IsRefusedWithLineAndColumn) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "m.ein:1:1: found the end of the file; required a program: size, input, weight, …"},
      {"input x[4]\ny = exp(z)", "m.ein:2:9: found 'z'; required the name of an expression above"},
      {"input x[4]\ninput x[5]", "m.ein:2:7: found 'x'; required a new name; line 1 defines this one"},
      {"input x[4", "m.ein:1:10: found the end of the file; required ','"},
      {"input x[b]", "m.ein:1:9: found 'b'; required a number, or a name from a size statement above"},
      {"input x[2.5]", "m.ein:1:9: found '2.5'; required a size: a whole number"},
      {"input x[0]", "m.ein:1:7: input 'x': found size 0; required at least 1"},
      {"size a = 1, a = 2", "m.ein:1:13: found 'a'; required a name that is not a size yet"},
      {"input x[4] f8", "m.ein:1:12: found 'f8'; required f16, f32, f64, c32, c64 or c128"},
      {"input x[4] f16 f16", "m.ein:1:16: found 'f16'; required the end of the statement"},
      {"input x[4]\ny = x @ x",
       "m.ein:2:7: found '@'; required a name, a number, or one of = [ ] ( ) , : + - * / ^ < $"},
      {"input x[4]\ny = 3", "m.ein:2:6: found the end of the file; required an expression that reads a tensor"},
      {"input x[4]\ny = x[i]", "m.ein:2:1: found 'y'; required labels on both sides, e.g. y[i]"},
      {"input x[4]\ny = frobnicate(x)",
       "m.ein:2:5: found 'frobnicate'; required one of if, a dtype, exp, log, tanh, sqrt, sigmoid, relu, "
       "silu, gelu, "
       "conj, max, min"},
      {"input x[4]\ny = softmax(x, x)", "m.ein:2:5: found 'softmax'; required softmax(x)"},
      {"input x[4]\ny = fill(1, 2.5)", "m.ein:2:5: found 'fill'; required fill(value, size, …)"},
      {"input x[4, 5]\ninput y[6, 7]\nz[i, k] = sum[j] x[i, j] * y[j, k]",
       "m.ein:3:1: einsum 'z' of 'x', 'y': label 'j' is 5 in 'x' and 6 in 'y'; required one size per label"},
      {"input x[4, 5]\nz[i] = x[i, j]",
       "m.ein:2:1: labels [j] are in the inputs but not in the output, and [] are aggregated; required the "
       "same, e.g. "
       "sum[j]"},
      {"input x[4]\noutput y", "m.ein:2:8: found 'y'; required the name of an expression above"},
      {"input x[4]\nloss x", "m.ein:2:6: 'x' has shape [4]; required a scalar loss"},
      {"input x[1e400]", "m.ein:1:9: found '1e400'; required a number that a double can hold"},
      {"input x[4]\ny = if(x, 1, 2)", "m.ein:2:9: found ','; required '<'"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message) << text;
}

TEST(AnEinFile, MayNotNestOrGrowWithoutEnd) {
  const std::string open(10'000, '('), minus(10'000, '-');
  EXPECT_NE(error_of("input x[4]\ny = " + open + "x").find("nested operations"), std::string::npos);
  EXPECT_NE(error_of("input x[4]\ny = " + minus + "x").find("nested operations"), std::string::npos);
  std::string sum = "x";
  for (int i = 1; i < 1000; ++i) sum += fmt::format(" + {} * x ^ {}", i, i);
  EXPECT_NE(error_of("input x[4]\ny = " + sum).find("operations in one statement"), std::string::npos);
}

}  // namespace
}  // namespace doppler::program
