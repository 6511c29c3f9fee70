#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/loading.h"
#include "doppler/app/programs.h"
#include "doppler/app/verbs.h"
#include "doppler/base/file.h"
#include "doppler/program/relational/physical.h"
#include "doppler/program/relational/relational_plan.h"
#include "doppler/results.h"

namespace doppler {
namespace {

struct ExplainOptions : ProgramOptions {
  std::string path;
  Options output;
};

std::string box_text(const program::Node& node, const program::Box& box) {
  const program::Einsum* einsum = node.as<program::Einsum>();
  std::string text;
  for (std::size_t i = 0; i < box.size(); ++i)
    text +=
        fmt::format("{}{}:{}", i == 0 ? "" : " ", einsum != nullptr ? einsum->labels[i] : fmt::format("{}", i), box[i]);
  return text;
}

std::vector<PlanResult::Cut> cuts_of(const program::Program& program, const program::Plan& plan) {
  std::vector<PlanResult::Cut> cuts;
  const std::vector<char> needed = program::live(program);
  for (program::ExprId id = 0; id < program.size(); ++id) {
    const program::Node& node = program.node(id);
    if (!needed[id] || node.as<program::Input>() != nullptr || node.as<program::Formation>() != nullptr) continue;
    cuts.push_back({node.name, std::string(program::kernel_kind(node)), box_text(node, plan[id]),
                    static_cast<std::size_t>(program::product(plan[id]))});
  }
  return cuts;
}

// The usual plans, by EinDecomp's measure and by that of the relational algebra.
std::vector<PlanResult::Rival> usual_plans(const program::Program& program,
                                           const program::DecomposeOptions& decomposing) {
  std::vector<PlanResult::Rival> plans;
  for (const char* name : {"eindecomp", "relational", "data", "model", "uncut"}) {
    const program::Plan plan = make_plan(program, name, decomposing, std::nullopt);
    const program::PlanCost cost = program::estimate(program, plan, decomposing);
    plans.push_back({name, cost.moved, cost.messages, cost.compute, cost.seconds,
                     program::relational_seconds(program, plan, decomposing), cost.resident});
  }
  return plans;
}

RewriteResult explain_model(const ExplainOptions& options, std::string content) {
  const GraphFile file = parse_graph_file(options.path, std::move(content), nullptr, load_options(options.output));
  RewriteResult result{.model = options.path, .passes = {}};
  result.nodes = file.onnx->totals.nodes;
  result.folded_nodes = file.onnx->totals.folded_nodes;
  result.ops = file.graph->op_count();
  for (const program::RewriteCount& pass : file.onnx->rewrites) result.passes.push_back({pass.pass, pass.found});
  return result;
}

PlanResult explain_program(const ExplainOptions& options, const std::string& content) {
  const program::EinProgram model = program::parse_ein(options.path, content);
  train_if_asked(*model.program, model.loss, options);
  const program::Program& program = *model.program;
  const program::DecomposeOptions decomposing = decompose_options(options);
  const program::Plan plan = make_plan(program, options.plan, decomposing, std::nullopt);
  const program::LogicalPlan compiled = program::compile(program, plan).logical;
  std::vector<program::TraId> roots = program::roots_of(compiled);
  const program::LogicalPlan logical = program::rewrite(compiled, roots);
  PlanResult result;
  result.program = options.path;
  result.plan = options.plan;
  result.expressions = program.size();
  result.parts = options.parts;
  result.sites = decomposing.devices > 0 ? decomposing.devices : options.parts;
  result.cuts = cuts_of(program, plan);
  result.plans = usual_plans(program, decomposing);
  const auto sites = static_cast<unsigned>(result.sites);
  std::istringstream lines(program::explain(logical, program::optimise(logical, sites, decomposing.speeds)));
  for (std::string line; std::getline(lines, line);) result.relations.push_back(line);
  return result;
}

AnyResult explain(const ExplainOptions& options) {
  std::string content = read_file(options.path);
  if (program::looks_like_onnx(content)) return explain_model(options, std::move(content));
  return explain_program(options, content);
}

}  // namespace

void add_explain(CLI::App& command) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* verb = command.add_subcommand(
      "explain", "Show how a program (.ein) is cut, joined and moved, and why, or how a model (.onnx) is rewritten");
  verb->add_option("program", options->path, "A program (docs/programs.md) or an ONNX model; - is standard input")
      ->required();
  add_program_flags(*verb, *options);
  add_dim_flag(*verb, options->output.dims);
  verb->add_flag("--no-rewrite", options->output.no_rewrite, "ONNX: keep the model's nodes as they are; fuse none");
  add_output_flags(*verb, options->output);
  verb->footer("Example:\n  doppler explain examples/attention.ein --parts 4");
  verb->callback([options] {
    check_outputs({options->path, options->machine},
                  {{"--json", options->output.json}, {"--html", options->output.html}});
    present(options->output, explain(*options));
  });
}

}  // namespace doppler
