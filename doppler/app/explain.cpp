#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/programs.h"
#include "doppler/app/verbs.h"
#include "doppler/program/relational/physical.h"
#include "doppler/program/relational/relational_plan.h"
#include "doppler/report/table.h"

namespace doppler {
namespace {

struct ExplainOptions : ProgramOptions {
  std::string path;
};

std::string box_text(const program::Node& node, const program::Box& box) {
  const program::Einsum* einsum = node.as<program::Einsum>();
  std::string text;
  for (std::size_t i = 0; i < box.size(); ++i)
    text +=
        fmt::format("{}{}:{}", i == 0 ? "" : " ", einsum != nullptr ? einsum->labels[i] : fmt::format("{}", i), box[i]);
  return text;
}

std::string plan_table(const program::Program& program, const program::Plan& plan) {
  Table table(
      {{"expression", Table::Align::left}, {"kernel", Table::Align::left}, {"cut", Table::Align::left}, {"blocks"}});
  const std::vector<char> needed = program::live(program);
  for (program::ExprId id = 0; id < program.size(); ++id) {
    const program::Node& node = program.node(id);
    if (!needed[id] || node.as<program::Input>() != nullptr || node.as<program::Formation>() != nullptr) continue;
    table.add_row({node.name, std::string(program::kernel_kind(node)), box_text(node, plan[id]),
                   std::to_string(program::product(plan[id]))});
  }
  return table.text();
}

// The plan against the usual ones, by EinDecomp's measure and by that of the relational algebra.
std::string comparison(const program::Program& program, const ExplainOptions& options) {
  const program::DecomposeOptions decomposing = decompose_options(options);
  Table table(
      {{"plan", Table::Align::left}, {"moved"}, {"messages"}, {"compute"}, {"estimate"}, {"relational"}, {"resident"}});
  for (const char* name : {"eindecomp", "relational", "data", "model", "uncut"}) {
    ProgramOptions other = options;
    other.plan = name;
    const program::Plan plan = make_plan(program, other, std::nullopt);
    const program::PlanCost cost = program::estimate(program, plan, decomposing);
    table.add_row({name, format_bytes(static_cast<Bytes>(cost.moved)), fmt::format("{:.0f}", cost.messages),
                   format_seconds(cost.compute), format_seconds(cost.seconds),
                   format_seconds(program::relational_seconds(program, plan, decomposing)),
                   format_bytes(static_cast<Bytes>(cost.resident))});
  }
  return table.text();
}

std::string explanation(const ExplainOptions& options) {
  const program::EinProgram model = read_ein(options.path);
  train_if_asked(*model.program, model.loss, options);
  const program::Program& program = *model.program;
  const program::Plan plan = make_plan(program, options, std::nullopt);
  const program::LogicalPlan compiled = program::compile(program, plan).logical;
  std::vector<program::TraId> roots = program::roots_of(compiled);
  const program::LogicalPlan logical = program::rewrite(compiled, roots);
  const program::DecomposeOptions decomposing = decompose_options(options);
  const auto sites = static_cast<unsigned>(decomposing.devices > 0 ? decomposing.devices : options.parts);
  std::string text = fmt::format("{}: {} expressions in at most {} blocks each, plan {}\n\n", options.path,
                                 program.size(), options.parts, options.plan);
  text += plan_table(program, plan) + "\nplans compared (estimate: no overlap between expressions)\n";
  text += comparison(program, options) + fmt::format("\nrelations on {} sites\n", sites);
  return text + program::explain(logical, program::optimise(logical, sites, decomposing.speeds));
}

}  // namespace

void add_explain(CLI::App& command) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* verb = command.add_subcommand("explain", "Show how a program (.ein) is cut, joined and moved, and why");
  verb->add_option("program", options->path, "A program (docs/programs.md); - is standard input")->required();
  add_program_flags(*verb, *options);
  verb->footer("Example:\n  doppler explain examples/attention.ein --parts 4");
  verb->callback([options] { print_text({}, explanation(*options)); });
}

}  // namespace doppler
