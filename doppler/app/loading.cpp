#include "doppler/app/loading.h"

#include <charconv>

#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/report/summary.h"
#include "doppler/sim/objective.h"

namespace doppler {

namespace {

// "name=size", each name once.
std::map<std::string, program::Index> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, program::Index> dims;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');  // a name may contain one
    program::Index size = 0;
    const char *first = text.data() + std::min(text.size(), equals + 1), *last = text.data() + text.size();
    if (equals == std::string::npos || equals == 0 ||
        std::from_chars(first, last, size) != std::from_chars_result{last, {}})
      throw InputError(fmt::format("--dim: found '{}'; required NAME=SIZE", text));
    if (!dims.emplace(text.substr(0, equals), size).second)
      throw InputError(fmt::format("--dim: found '{}' twice; required one size per name", text.substr(0, equals)));
  }
  return dims;
}

}  // namespace

LoadOptions load_options(const Options& options, Purpose purpose) {
  LoadOptions result;
  result.rules = {.discipline = parse_discipline(options.discipline),
                  .ties = parse_ties(options.ties),
                  .bulk_synchronous = options.bulk_synchronous,
                  .seed = options.seed};
  if (!options.links.empty()) result.links = parse_links(options.links);
  result.pins = options.pins;
  result.repair = options.repair;
  result.dims = parse_dims(options.dims);
  result.shard = options.shard;
  result.runnable = purpose == Purpose::execution;
  return result;
}

Machine machine_from(const Options& options) {
  const Machine machine = load_machine(options.machine);
  return options.jitter ? machine.with_jitter(*options.jitter) : machine;
}

GraphFile load_graph(const std::string& path, const Machine* machine, const Options& options, Purpose purpose) {
  GraphFile file = read_graph_file(path, machine, load_options(options, purpose));
  if (!options.quiet)
    for (const std::string& warning : file.warnings) complain("warning: " + warning);
  return file;
}

LoadedProblem load(const std::string& path, const Machine& machine, const Options& options, Purpose purpose) {
  GraphFile file = load_graph(path, &machine, options, purpose);
  Problem problem = make_problem(file, machine, load_options(options));
  return {std::move(file), std::move(problem)};
}

LoadedProblem load(const std::string& path, const Options& options, Purpose purpose) {
  return load(path, machine_from(options), options, purpose);
}

std::string show_time(const LoadedProblem& loaded, Seconds value) {
  return format_time(value, loaded.problem.graph().unitless());
}

Outcome outcome_of(const LoadedProblem& loaded, const Options& options, const LowerBound& bound) {
  Outcome outcome;
  outcome.made.version = DOPPLER_VERSION;
  outcome.made.budget = describe_budget(options);
  outcome.made.seed = options.seed;
  outcome.made.graph = loaded.file.path;
  outcome.made.machine = loaded.problem.machine().name();
  outcome.made.discipline = to_string(loaded.problem.rules().discipline);
  outcome.made.links = to_string(loaded.problem.rules().links);
  outcome.made.lower_bound = bound.value;
  outcome.bound_kind = bound.kind;
  outcome.unitless = loaded.problem.graph().unitless();
  return outcome;
}

Outcome outcome_of(const LoadedProblem& loaded, const Options& options, const Result& result) {
  Outcome outcome = outcome_of(loaded, options, result.bound);
  outcome.made.method = result.method;
  outcome.made.winner = result.winner;
  outcome.made.evaluations = result.evaluations;
  outcome.made.makespan = result.makespan;
  outcome.gap = result.gap;
  outcome.feasible = result.feasible;
  outcome.optimal = result.optimal;
  outcome.seconds = result.seconds;
  return outcome;
}

std::optional<Seconds> expected_on_machine(const Problem& problem, const Placement& placement) {
  if (problem.machine().jitter() == 0) return std::nullopt;
  return ExpectedObjective(problem).value(placement);
}

std::string show_gap(const Outcome& outcome) {
  if (outcome.optimal) return "0 %, proven optimal";
  return fmt::format("{:.1f} %", 100 * outcome.gap);
}

std::string describe_overflow(const LoadedProblem& loaded, const Timeline::Overflow& overflow) {
  return fmt::format("{}: op '{}' needs {} on device '{}'; required at most {}", loaded.file.path,
                     loaded.problem.graph().name(overflow.op), format_bytes(overflow.needed),
                     loaded.problem.machine().device(overflow.device).name, format_bytes(overflow.capacity));
}

std::string describe_run(const LoadedProblem& loaded, const Outcome& outcome, const Timeline& timeline) {
  const Traffic moved = traffic(timeline, loaded.problem.graph());
  std::string text = fmt::format("makespan     {}{}\n", show_time(loaded, timeline.makespan),
                                 timeline.feasible() ? "" : "  INFEASIBLE: exceeds memory");
  if (outcome.expected)
    text += fmt::format("expected     {} (times vary by {:.1f} % on this machine)\n",
                        show_time(loaded, *outcome.expected), 100 * loaded.problem.machine().jitter());
  text +=
      fmt::format("lower bound  {} ({})\n", show_time(loaded, outcome.made.lower_bound), to_string(outcome.bound_kind));
  text += fmt::format("gap          {}\n", show_gap(outcome));
  text += fmt::format("transfers    {}, {}\n", moved.transfers, format_bytes(moved.bytes));
  return text + "\n" + device_table(timeline, loaded.problem.machine());
}

}  // namespace doppler
