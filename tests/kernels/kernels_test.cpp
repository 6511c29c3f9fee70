#include <cstring>

#include "doppler/engine/threads/threads_executor.h"
#include "doppler/kernels/generate_inputs.h"
#include "doppler/program/cut/decompose.h"
#include "doppler/program/expr/autodiff.h"
#include "tests/kernels/sequential_run.h"
#include "tests/kernels/test_backend.h"
#include "tests/program/random_program.h"
#include "tests/program/tiny_llama.h"

namespace doppler {
namespace {

using namespace program;

// Relative to the largest value of a tensor: rounding of a few hundred operations one after the other, and functions
// that are off by four units in the last place.
double tolerance(DType dtype) { return dtype == DType::f64 || dtype == DType::c128 ? 1e-11 : 2e-4; }

double scale_of(const Dense& dense) {
  double scale = 1;
  for (const auto& value : dense.values)
    if (std::isfinite(value.real())) scale = std::max(scale, std::abs(value));
  return scale;
}

void expect_near(const Array& found, const Dense& expected, const std::string& what) {
  const Dense dense = to_dense(found);
  ASSERT_EQ(dense.shape, expected.shape) << what;
  const double bound = tolerance(found.dtype) * scale_of(expected);
  for (std::size_t i = 0; i < dense.values.size(); ++i) {
    if (dense.values[i] == expected.values[i]) continue;  // infinities
    ASSERT_LE(std::abs(dense.values[i] - expected.values[i]), bound)
        << what << " element " << i << ": " << dense.values[i] << " instead of " << expected.values[i];
  }
}

// What the reference computes from the same numbers.
Values as_values(const Arrays& arrays) {
  Values result;
  for (const auto& [id, array] : arrays) result.emplace(id, to_dense(array));
  return result;
}

Arrays as_arrays(const Program& program, const Values& values) {
  Arrays result;
  for (const auto& [id, value] : values) result.emplace(id, to_array(value, program.node(id).dtype));
  return result;
}

struct RunOptions {
  TestBackend backend;
  LowerOptions lowering = {};
  FoldOrder order = FoldOrder::fixed;
  Variables variables = {};
};

void expect_results(const Program& program, const ProgramKernels& kernels, const std::vector<Dense>& expected) {
  ASSERT_EQ(kernels.results().size(), program.outputs().size() + program.updates().size());
  for (const auto& [id, array] : kernels.results()) expect_near(array, expected[id], program.node(id).name);
}

// Three equal devices with a rate for any op.
Machine three_devices() {
  std::vector<Device> devices(3);
  for (Device& device : devices) {
    device.name = std::string("d") + std::to_string(&device - devices.data());
    device.type = "cpu";
    device.rates = {{"*", "*", 1e9}};
  }
  return Machine("three", devices, std::vector<Link>(9));
}

// Asynchronously, under random placements, whoever copies: the values depend on none of it.
void expect_reference_in_the_engine(const Program& program, const Lowered& lowered,
                                    const std::shared_ptr<ProgramKernels>& kernels, const std::vector<Dense>& expected,
                                    bool deterministic, Links links) {
  const Machine machine = three_devices();
  const Problem problem(lowered.graph, machine, {.links = links});
  ThreadsExecutor executor(problem, {.kernels = kernels, .deterministic = deterministic});
  Rng rng(lowered.graph.op_count());
  for (int run = 0; run < 2; ++run) {
    Placement placement{std::vector<DeviceId>(problem.op_count()), {}, {}};
    for (OpId op = 0; op < problem.op_count(); ++op) {
      const OpId first = problem.unit(op).front();  // ops of a group share a device
      placement.device_of_op[op] = first == op ? rng.below(3) : placement.device_of_op[first];
    }
    // All ones is not a number: what this run does not compute is not taken for what an earlier one did.
    for (const auto& [id, array] : kernels->results())
      if (program.node(id).as<Input>() == nullptr) std::memset(array.bytes.data(), 0xFF, array.bytes.size());
    executor.time(placement);
    expect_results(program, *kernels, expected);
  }
}

void expect_reference(const Program& program, const Plan& plan, Arrays inputs, const RunOptions& options) {
  const std::vector<Dense> expected = evaluate(program, as_values(inputs), options.variables);
  const Lowered lowered = lower(program, plan, options.lowering);
  const auto kernels =
      std::make_shared<ProgramKernels>(program, lowered, std::move(inputs), options.variables, options.backend.make());
  kernels->keep_results(true);
  run_sequentially(lowered.graph, *kernels, options.order);
  expect_results(program, *kernels, expected);
  for (const Links links : {Links::free, Links::receiver})
    expect_reference_in_the_engine(program, lowered, kernels, expected, options.order == FoldOrder::fixed, links);
}

using Parameter = std::tuple<DType, TestBackend>;
std::string name_of(const testing::TestParamInfo<Parameter>& suite) {
  return std::string(to_string(std::get<0>(suite.param))) + "_" + std::get<1>(suite.param).name;
}
const auto kEveryPrecisionAndBackend =
    testing::Combine(testing::Values(DType::f32, DType::f64), testing::ValuesIn(test_backends()));

// Every kind of op in both precisions, on every plan of at most three pieces that chance gives.
class AKernel : public testing::TestWithParam<Parameter> {
 protected:
  DType dtype() const { return std::get<0>(GetParam()); }
  Expr input(const char* name, Shape shape) { return p.input(name, std::move(shape), dtype()); }
  void check(Expr result, double low = -1, double high = 1) {
    p.mark_output(result);
    const Values values = random_inputs(p, 7, low, high);
    expect_reference(p, uncut(p), as_arrays(p, values), {.backend = std::get<1>(GetParam())});
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Rng rng(seed);
      RunOptions options{.backend = std::get<1>(GetParam())};
      options.order = seed % 2 == 0 ? FoldOrder::fixed : FoldOrder::arrival;
      options.lowering.costs = seed % 4 < 2 ? CostMode::per_block : CostMode::published;
      options.lowering.skip_single_formations = seed % 3 == 0;
      expect_reference(p, random_plan(p, rng), as_arrays(p, values), options);
    }
  }
  // Through an expression before and after it, so that it reads and writes tensors in pieces.
  void check_between(Expr result) { check(p.map({result}, kX * 2 + 1)); }
  Expr copy(Expr x) { return p.map({x}, kX + 0.25); }

  const Scalar kX = Scalar::argument(0), kY = Scalar::argument(1), kZ = Scalar::argument(2);
  Program p;
};

TEST_P(AKernel, MultipliesMatrices) {
  check_between(p.einsum("ij,jk->ik", {copy(input("x", {7, 5})), copy(input("y", {5, 9}))}));
}
TEST_P(AKernel, MultipliesTransposedMatrices) {
  check_between(p.einsum("ji,kj->ik", {copy(input("x", {5, 7})), copy(input("y", {9, 5}))}));
}
TEST_P(AKernel, GivesATransposedProduct) {
  check_between(p.einsum("ij,jk->ki", {copy(input("x", {7, 5})), copy(input("y", {5, 9}))}));
}
TEST_P(AKernel, MultipliesAMatrixAndAVector) {
  const Expr x = copy(input("x", {7, 5})), v = copy(input("v", {5})), w = copy(input("w", {7}));
  check_between(
      p.einsum("i,i->i", {p.einsum("ij,j->i", {x, v}), p.einsum("ij,j->i", {p.einsum("k,kj->kj", {w, x}), v})}));
}
TEST_P(AKernel, MultipliesAVectorAndAMatrix) {
  check_between(p.einsum("i,ij->j", {copy(input("v", {7})), copy(input("x", {7, 5}))}));
}
TEST_P(AKernel, MultipliesBatches) {
  check_between(p.einsum("bshd,bthd->bhst", {copy(input("q", {2, 5, 3, 4})), copy(input("k", {2, 6, 3, 4}))}));
}
TEST_P(AKernel, MultipliesBatchesThatLieInside) {
  check_between(p.einsum("ikb,jkb->ijb", {copy(input("x", {4, 5, 3})), copy(input("y", {6, 5, 3}))}));
}
TEST_P(AKernel, ContractsSeveralLabelsInEitherOrder) {
  check_between(p.einsum("ahbk,khc->acb", {copy(input("x", {3, 4, 2, 5})), copy(input("y", {5, 4, 3}))}));
}
TEST_P(AKernel, ContractsLabelsOfOneOperandAlone) {
  check_between(p.einsum("ij,jk->i", {copy(input("x", {4, 5})), copy(input("y", {5, 3}))}));
}
TEST_P(AKernel, TakesDotProducts) {
  check_between(p.einsum("ij,ij->i", {copy(input("x", {6, 700})), copy(input("y", {6, 700}))}));
}
TEST_P(AKernel, ContractsAMatrixWithItself) {
  const Expr x = copy(input("x", {6, 5}));
  check_between(p.einsum("ij,kj->ik", {x, x}));
}
TEST_P(AKernel, MultipliesThreeTensors) {
  check_between(
      p.einsum("ij,kj,kl->il", {copy(input("x", {4, 5})), copy(input("y", {3, 5})), copy(input("z", {3, 6}))}));
}
TEST_P(AKernel, JoinsElementByElement) {
  const Expr x = copy(input("x", {9, 131})), y = copy(input("y", {9, 131}));
  check_between(p.map({x, y}, kX / (3 + kY) - 2 * kY + kX * kX));
}
TEST_P(AKernel, JoinsMoreElementsThanALaneHas) {
  check_between(p.map({copy(input("x", {3, 1200})), copy(input("y", {3, 1200}))}, kX - kY));
}
TEST_P(AKernel, BroadcastsRowsAndColumns) {
  const Expr x = copy(input("x", {5, 7})), row = copy(input("r", {5})), column = copy(input("c", {7}));
  check_between(p.einsum({{"i", "j"}, {"i"}, {"j"}}, {"i", "j"}, {x, row, column}, {.join = kX * kY + kZ}));
}
TEST_P(AKernel, BroadcastsALabelThatNoInputHas) {
  check_between(p.einsum("ij->ikj", {copy(input("x", {3, 4}))}, {.sizes = {{"k", 5}}}));
}
TEST_P(AKernel, Permutes) { check_between(p.einsum("ijk->kij", {copy(input("x", {5, 70, 3}))})); }
TEST_P(AKernel, JoinsWithAPermutedOperand) {
  check_between(p.einsum("ij,ji->ij", {copy(input("x", {33, 65})), copy(input("y", {65, 33}))}, {.join = kX - kY}));
}
TEST_P(AKernel, ReducesRows) {
  const Expr x = copy(input("x", {6, 1100}));
  const Expr sum = p.einsum("ij->i", {x}), most = p.einsum("ij->i", {x}, {.aggregate = Aggregate::max});
  check_between(p.map({sum, most}, kX - kY));
}
TEST_P(AKernel, ReducesShortRows) { check_between(p.einsum("ijk->ij", {copy(input("x", {40, 9, 3}))})); }
TEST_P(AKernel, ReducesColumns) {
  check_between(p.einsum("ij->j", {copy(input("x", {50, 7}))}, {.join = kX * kX, .aggregate = Aggregate::min}));
}
TEST_P(AKernel, ReducesTheMiddle) { check_between(p.einsum("ijk->ik", {copy(input("x", {4, 9, 6}))})); }
TEST_P(AKernel, ReducesToAScalar) {
  check(p.einsum("ij->", {copy(input("x", {8, 9}))}, {.join = kX + 1.5, .aggregate = Aggregate::product}));
}
TEST_P(AKernel, ReducesAJoin) {
  check_between(p.einsum("ij,kj->ij", {copy(input("x", {5, 6})), copy(input("y", {4, 6}))},
                         {.join = kX - kY * kY, .aggregate = Aggregate::max}));
}
TEST_P(AKernel, ReducesAFunctionThatReadsNoOperandInFull) {
  check_between(p.einsum("ij,kl->il", {copy(input("x", {3, 4})), copy(input("y", {5, 6}))}, {.join = kY * 2}));
}
TEST_P(AKernel, ComputesElementaryFunctions) {
  const Expr x = copy(input("x", {7, 101}));
  const Scalar positive = exp(kX) + 0.5;
  check_between(p.map({x}, log(positive) + tanh(kX) * sqrt(positive) + pow(positive, -0.5) + pow(positive, 1.7) +
                               pow(kX, 3.0) + 1.0 / positive + gelu(kX) + silu(kX)));
}
TEST_P(AKernel, Compares) {
  const Expr x = copy(input("x", {7, 11})), y = copy(input("y", {7, 11}));
  check_between(p.map({x, y}, relu(kX) + maximum(kX, kY) - minimum(kX, 2 * kY) + if_less(kX, kY, kX * kY, 3.0) +
                                  if_equal(kX, kY, 1.0, 0.0)));
}
TEST_P(AKernel, SelectsAndConcatenates) {
  const Expr x = copy(input("x", {5, 6})), y = copy(input("y", {5, 3}));
  check_between(p.select(p.concat({x, y, x}, 1), {{1, 2}, {4, 13}}));
  check_between(p.concat({p.select(x, {{0, 1}, {5, 4}}), y}, 0));
}
TEST_P(AKernel, SelectsAndConcatenatesInputs) {
  const Expr x = input("x", {5, 6}), y = input("y", {5, 3});
  check(p.select(p.concat({x, y}, 1), {{1, 2}, {4, 8}}));
}
TEST_P(AKernel, Squeezes) {
  const Expr x = copy(input("x", {5, 1, 6}));
  check_between(p.reshape_ones(p.map({p.reshape_ones(x, {1, 5, 6, 1})}, kX * kX), {5, 6}));
}
TEST_P(AKernel, FillsUpToTheDiagonal) {
  const Expr x = copy(input("x", {2, 7, 5})), mask = p.fill({2, 7, 5}, dtype(), {.value = 2, .above = -3});
  check_between(p.map({x, mask}, kX * kY));
}
TEST_P(AKernel, TurnsPairsIntoComplexNumbersAndBack) {
  const Expr x = copy(input("x", {3, 10})), t = p.input("t", {3, 5}, complex_of(dtype()));
  const Expr turned = p.map({p.to_complex(x), t}, kX * kY + conj(kX) / (2 + kY));
  check_between(p.to_real(turned));
}
TEST_P(AKernel, MultipliesComplexMatrices) {
  const Expr x = copy(input("x", {4, 6})), y = copy(input("y", {3, 10}));
  check_between(p.to_real(p.einsum("ij,jk->ik", {p.to_complex(x), p.to_complex(y)})));
}
TEST_P(AKernel, TakesExponentialsOfComplexNumbers) {
  check_between(p.to_real(p.map({p.to_complex(copy(input("x", {3, 8})))}, exp(kX) + tanh(kX) + log(2 + kX))));
}
TEST_P(AKernel, OrdersComplexNumbersByTheirRealParts) {
  const Expr x = p.to_complex(copy(input("x", {6, 10}))), y = p.to_complex(copy(input("y", {6, 10})));
  const Expr most = p.einsum("ij->i", {x}, {.aggregate = Aggregate::max});
  const Expr least = p.einsum("ij->i", {y}, {.aggregate = Aggregate::min});
  const Expr all = p.einsum("ij->i", {y}, {.aggregate = Aggregate::product});
  check_between(p.to_real(p.map({most, least, all}, if_less(kX, kY, kX * kZ, maximum(kY, kZ) + minimum(kX, 2 * kZ)))));
}
TEST_P(AKernel, ConvertsBetweenPrecisions) {
  const Expr x = copy(input("x", {5, 9}));
  const Expr wide = p.convert(x, DType::f64);
  check(p.einsum("ij->i", {wide}, {.join = convert(DType::f32, kX * 3)}));
  check(p.convert(p.map({p.convert(x, DType::f32)}, kX * 3), DType::f32));
}
TEST_P(AKernel, SoftmaxesNormsAndLosses) {
  const Expr x = copy(input("x", {6, 8})), w = input("w", {8}), b = input("b", {8});
  check_between(softmax(rms_norm(layer_norm(x, w, b), w)));
}
TEST_P(AKernel, AppliesACausalMask) {
  const Expr x = copy(input("x", {2, 6, 6}));
  const Expr masked =
      p.einsum({{"b", "s", "t"}, {"s", "t"}}, {"b", "s", "t"}, {x, causal_mask(p, 6, dtype())}, {.join = kX + kY});
  check_between(softmax(masked));
}

INSTANTIATE_TEST_SUITE_P(Precision, AKernel, kEveryPrecisionAndBackend, name_of);

class AProgram : public testing::TestWithParam<TestBackend> {};

TEST_P(AProgram, OfAnyOpsComputesAsTheReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Program p;
    random_program(p, rng, 10);
    RunOptions options{.backend = GetParam()};
    const CostMode modes[] = {CostMode::per_block, CostMode::published, CostMode::seconds};
    options.lowering.costs = modes[seed % 3];
    options.lowering.skip_single_formations = seed % 2 == 0;
    options.order = seed % 4 < 2 ? FoldOrder::fixed : FoldOrder::arrival;
    expect_reference(p, random_plan(p, rng), as_arrays(p, random_inputs(p, seed + 1000)), options);
  }
}

class TinyLlama : public testing::TestWithParam<Parameter> {
 protected:
  DType dtype() const { return std::get<0>(GetParam()); }
  RunOptions on_backend() const { return {.backend = std::get<1>(GetParam())}; }
};

TEST_P(TinyLlama, RunsForward) {
  for (const auto part : {LlamaOptions::Part::block, LlamaOptions::Part::model}) {
    LlamaOptions options = tiny_llama();
    options.dtype = dtype();
    options.part = part;
    Program p;
    llama(p, options);
    for (const Index parts : {1, 2, 4})
      expect_reference(p, decompose(p, {.parts = parts})[0].plan, generate_inputs(p, 3), on_backend());
  }
}

TEST_P(TinyLlama, DecodesAgainstACache) {
  LlamaOptions options = tiny_llama();
  options.dtype = dtype();
  options.decode = true;
  Program p;
  llama(p, options);
  Rng rng(5);
  expect_reference(p, random_plan(p, rng), generate_inputs(p, 3), on_backend());
}

TEST_P(TinyLlama, TakesATrainingStepWithAdam) {
  LlamaOptions options = tiny_llama();
  options.dtype = dtype();
  options.train = true;
  Program p;
  llama(p, options);
  add_training_step(p.expr(p.outputs()[0]), Optimizer::adam);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Rng rng(seed);
    RunOptions run = on_backend();
    run.variables = generate_variables(p);
    run.order = seed == 1 ? FoldOrder::arrival : FoldOrder::fixed;
    expect_reference(p, seed == 2 ? data_parallel(p, 2) : random_plan(p, rng), generate_inputs(p, seed), run);
  }
}

INSTANTIATE_TEST_SUITE_P(Precision, TinyLlama, kEveryPrecisionAndBackend, name_of);

TEST_P(AProgram, KeepsAnOutputThatIsAnInput) {
  Program p;
  const Expr x = p.input("x", {4});
  p.mark_output(x);
  p.mark_output(p.map({x}, Scalar::argument(0) * 2.0));
  expect_reference(p, uncut(p), generate_inputs(p, 1), {.backend = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Of, AProgram, testing::ValuesIn(test_backends()),
                         [](const auto& suite) { return suite.param.name; });

}  // namespace
}  // namespace doppler
