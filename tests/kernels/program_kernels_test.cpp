#include "doppler/kernels/program_kernels.h"

#include "doppler/kernels/generate_inputs.h"
#include "tests/kernels/sequential_run.h"
#include "tests/program/random_program.h"

namespace doppler {
namespace {

using namespace program;

TEST(ProgramKernels, KeepNoResultsUnlessAsked) {
  Program p;
  p.mark_output(p.map({p.input("x", {4})}, Scalar::argument(0) * 2.0));
  const Lowered lowered = lower(p, uncut(p));
  ProgramKernels kernels(p, lowered, generate_inputs(p, 1));
  run_sequentially(lowered.graph, kernels);
  EXPECT_TRUE(kernels.results().empty());
}

TEST(ProgramKernels, AreRefusedForInputsThatDoNotFit) {
  Program p;
  const Expr x = p.input("x", {4});
  p.mark_output(p.map({x}, Scalar::argument(0) * Scalar::variable("rate"), "y"));
  const Lowered lowered = lower(p, uncut(p));
  const auto refusal = [&](Arrays inputs) {
    return message_of([&] { ProgramKernels(p, lowered, std::move(inputs)); });
  };
  EXPECT_EQ(refusal({}), "input 'x': found no value; required f32 [4]");
  Arrays wrong;
  wrong.emplace(x.id, Array(DType::f64, {2, 2}));
  EXPECT_EQ(refusal(std::move(wrong)), "input 'x': found f64 [2, 2]; required f32 [4]");
  EXPECT_EQ(refusal(generate_inputs(p, 1)), "variable 'rate': found no value; required one at launch");
}

TEST(ProgramKernels, AreRefusedForDtypesWithoutKernels) {
  Program p;
  const Expr x = p.input("x", {4}, DType::f16);
  p.mark_output(p.map({x}, Scalar::argument(0) * 2.0, "y"));
  Arrays inputs;
  inputs.emplace(x.id, Array(DType::f16, {4}));
  const Lowered lowered = lower(p, uncut(p));
  EXPECT_EQ(message_of([&] { ProgramKernels(p, lowered, std::move(inputs)); }),
            "'y': found f16; required f32, f64, c64 or c128 to run it (generate … --dtype f32)");
}

}  // namespace
}  // namespace doppler
