#include "doppler/program/text/program_json.h"

#include "doppler/graph/formats/native_json.h"
#include "doppler/program/expr/autodiff.h"
#include "tests/program/random_program.h"
#include "tests/program/tiny_llama.h"

namespace doppler::program {
namespace {

// Writes a graph file with its program, reads it, and loads the program.
RunnableProgram through_a_file(const Program& program, const Plan& plan, const LowerOptions& options) {
  const Lowered lowered = lower(program, plan, options);
  const std::string file = graph_to_json(lowered.graph, program_to_json(program, plan, options));
  const LoadedGraph loaded = parse_native_json("file", file);
  EXPECT_EQ(graph_to_json(loaded.graph, loaded.program), file);
  return load_program("file", loaded.program, loaded.graph);
}

void expect_same(const Program& found, const Program& expected) {
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(found.outputs(), expected.outputs());
  for (ExprId id = 0; id < expected.size(); ++id) {
    const Node &a = found.node(id), &b = expected.node(id);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.dtype, b.dtype) << b.name;
    EXPECT_EQ(a.shape, b.shape) << b.name;
    EXPECT_EQ(a.inputs, b.inputs) << b.name;
    ASSERT_EQ(a.computation.index(), b.computation.index()) << b.name;
    if (const Einsum* einsum = b.as<Einsum>()) {
      EXPECT_EQ(a.as<Einsum>()->join, einsum->join) << b.name;
      EXPECT_EQ(a.as<Einsum>()->operands, einsum->operands) << b.name;
      EXPECT_EQ(a.as<Einsum>()->aggregate, einsum->aggregate) << b.name;
    }
  }
}

TEST(AProgramFile, KeepsRandomProgramsAndTheirCutsInEveryCostMode) {
  const CostMode modes[] = {CostMode::per_block, CostMode::published, CostMode::seconds};
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    Program p;
    random_program(p, rng, 12);
    LowerOptions options{.costs = modes[seed % 3], .skip_single_formations = seed % 2 == 0};
    options.speeds.latency = 3e-6;
    const RunnableProgram back = through_a_file(p, random_plan(p, rng), options);
    expect_same(*back.program, p);
    EXPECT_EQ(back.options.skip_single_formations, options.skip_single_formations);
    EXPECT_EQ(back.options.speeds.latency, seed % 3 == 2 ? 3e-6 : Speeds{}.latency);
  }
}

TEST(AProgramFile, KeepsATrainingStepOfLlama) {
  LlamaOptions options = tiny_llama();
  options.train = true;
  Program p;
  llama(p, options);
  add_training_step(p.expr(p.outputs()[0]), Optimizer::adam);
  Rng rng(1);
  const RunnableProgram back = through_a_file(p, random_plan(p, rng), {});
  expect_same(*back.program, p);
  ASSERT_EQ(back.program->updates().size(), p.updates().size());
  for (std::size_t i = 0; i < p.updates().size(); ++i) EXPECT_EQ(back.program->updates()[i].next, p.updates()[i].next);
}

TEST(AProgramFile, KeepsInfinitiesAndVariables) {
  Program p;
  const Expr mask = causal_mask(p, 3, DType::f64);
  p.mark_output(p.map({mask}, Scalar::variable("rate") * Scalar::argument(0) + 0.1));
  const RunnableProgram back = through_a_file(p, uncut(p), {});
  EXPECT_EQ(back.program->node(0).as<Fill>()->above, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(back.program->node(1).as<Einsum>()->join, p.node(1).as<Einsum>()->join);
}

TEST(AProgramFile, IsEmptyForAnImportedModel) {
  Program p;
  p.stencil({}, {2}, DType::f32, {.kind = "softmax", .operands = {}, .most_pieces = {1}}, "s");
  EXPECT_EQ(program_to_json(p, uncut(p), {}), "");
}

// y[i] = sum over j of x[i, j], as three expressions, with one text replaced by another.
std::string refusal(const std::string& from, const std::string& to) {
  Program p;
  const Expr x = p.input("x", {4, 2}, DType::f64);
  p.mark_output(p.einsum("ij->i", {x}, {.name = "y"}));
  const Graph graph = lower(p, uncut(p)).graph;
  std::string text = program_to_json(p, uncut(p), {});
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  text.replace(at, from.size(), to);
  return message_of([&] { load_program("g.json", text, graph); });
}

TEST(AProgramFile, IsRefusedWithPlaceAndReason) {
  EXPECT_EQ(refusal("\"version\":1", "\"version\":2"), "g.json: program: 'version' is 2; required 1");
  EXPECT_EQ(refusal("\"version\":1", "\"versiom\":1"),
            "g.json: program: unknown key \"versiom\"; required one of 'version', 'costs', 'speeds', "
            "'skip_single_formations', 'expressions', 'outputs', 'updates'");
  EXPECT_EQ(refusal("\"f64\"", "\"f8\""),
            "g.json: program: expression 0: dtype: found 'f8'; required f16, f32, f64, c32, c64 or c128");
  EXPECT_EQ(refusal("\"inputs\":[0]", "\"inputs\":[7]"),
            "g.json: program: 'inputs' of 'y.partial' name expression 7; required an earlier one");
  EXPECT_EQ(refusal("\"outputs\":[2]", "\"outputs\":[1]"),
            "g.json: program: 'outputs' name the partial result 'y.partial'; required its formation");
  EXPECT_EQ(refusal("[[\"argument\",0]]", "[[\"argument\",1]]"),
            "g.json: program: expression 1: 'join' is [[\"argument\",1]]; required arguments that are inputs");
  EXPECT_EQ(refusal("[[\"argument\",0]]", "[[\"exp\",0]]"),
            "g.json: program: expression 1: scalar: instruction 0 reads 0; required an earlier one");
  EXPECT_EQ(
      refusal("[[\"argument\",0]]", "[[\"sinus\",0]]"),
      "g.json: program: expression 1: join: found [\"sinus\",0]; required one of argument, constant, variable, add, "
      "multiply, power, exp, log, tanh, conjugate, convert, select");
  EXPECT_EQ(
      refusal("\"sizes\":[4,2]", "\"sizes\":[4,3]"),
      "g.json: program: expression 1: einsum of 'x': label 'j' is 2 in 'x' and 3 in the given sizes; required one "
      "size per label");
  EXPECT_EQ(refusal("\"name\":\"y\"", "\"name\":\"x\""),
            "g.json: program: expression 2: 'name' is \"x\"; required a name that no other expression has");
}

TEST(AProgramFile, IsRefusedIfItsGraphIsAnother) {
  EXPECT_EQ(refusal("\"name\":\"y\"", "\"name\":\"z\""),
            "g.json: program: lowers to another graph: op 1 is 'z[0]'; required 'y[0]'");
  EXPECT_EQ(refusal("\"name\":\"y.partial\"", "\"box\":[4,1],\"name\":\"y.partial\""),
            "g.json: program: lowers to at least 4 ops; required those of the graph, 2");
  EXPECT_EQ(refusal("\"name\":\"y.partial\"", "\"box\":[5,1],\"name\":\"y.partial\""),
            "g.json: program: plan: 'y.partial' of [4, 2] is cut [5, 1]; required between 1 piece and one per element");
}

}  // namespace
}  // namespace doppler::program
