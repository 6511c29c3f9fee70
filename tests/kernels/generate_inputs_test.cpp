#include "doppler/kernels/generate_inputs.h"

#include <cmath>
#include <cstring>

#include "doppler/program/expr/autodiff.h"
#include "tests/program/random_program.h"
#include "tests/program/tiny_llama.h"

namespace doppler {
namespace {

using namespace program;

TEST(GeneratedInputs, AreTheSameForTheSameSeed) {
  Program p;
  const Expr x = p.input("x", {5, 6}, DType::f64);
  const auto bytes = [&](std::uint64_t seed) {
    const Arrays arrays = generate_inputs(p, seed);
    const Array& array = arrays.at(x.id);
    return std::string(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(GeneratedInputs, KeepTheVarianceOfAContraction) {
  Program p;
  const Expr x = p.input("x", {40, 1000}, DType::f64), w = p.weight("w", {1000, 40}, DType::f64);
  p.mark_output(p.einsum("ij,jk->ik", {x, w}));
  const Arrays arrays = generate_inputs(p, 1);
  double squares = 0;
  for (const auto& value : to_dense(arrays.at(w.id)).values) squares += std::norm(value);
  EXPECT_NEAR(squares / 40'000, 1.0 / 1000, 0.05 / 1000);  // 40 000 samples: half a per cent of deviation
}

TEST(GeneratedInputs, AreLegalForATrainingStep) {
  LlamaOptions options = tiny_llama();
  options.dtype = DType::f32;
  options.train = true;
  Program p;
  llama(p, options);
  add_training_step(p.expr(p.outputs()[0]), Optimizer::adam);
  const Arrays arrays = generate_inputs(p, 1);
  for (const auto& [id, array] : arrays) {
    const Node& node = p.node(id);
    const Dense dense = to_dense(array);
    if (node.name == "targets")
      for (std::size_t row = 0; row < dense.values.size(); row += 5) {
        double sum = 0;
        for (std::size_t i = 0; i < 5; ++i) sum += dense.values[row + i].real();
        EXPECT_EQ(sum, 1);
      }
    for (const auto& value : dense.values) {
      if (node.name.ends_with(".v")) {
        EXPECT_EQ(value, 0.0);
      }
      if (is_complex(node.dtype)) {
        EXPECT_NEAR(std::abs(value), 1, 1e-6);
      }
    }
  }
  Values values;
  for (const auto& [id, array] : arrays) values.emplace(id, to_dense(array));
  const std::vector<Dense> results = evaluate(p, values, generate_variables(p));
  for (const Program::Update& update : p.updates())
    for (const auto& value : results[update.next].values) EXPECT_TRUE(std::isfinite(value.real()));
}

TEST(GeneratedInputs, AreRefusedForDtypesWithoutKernels) {
  Program p;
  p.input("x", {2}, DType::f16);
  EXPECT_EQ(message_of([&] { generate_inputs(p, 1); }),
            "input 'x': found f16; required f32, f64, c64 or c128 to run it (generate … --dtype f32)");
}

}  // namespace
}  // namespace doppler
