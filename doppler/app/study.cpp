#include "doppler/app/study.h"

#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/programs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/report/summary.h"
#include "doppler/sim/expected_makespan.h"

namespace doppler {
namespace {

std::vector<Pin> parse_pins(const Graph& graph, const Machine& machine, const std::vector<std::string>& texts) {
  std::vector<Pin> pins;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');  // an op's name may contain one
    if (equals == std::string::npos) throw InputError(fmt::format("--pin: found '{}'; required op=device", text));
    pins.emplace_back(graph.op_by_name(std::string_view(text).substr(0, equals)),
                      machine.device_by_name(std::string_view(text).substr(equals + 1)));
  }
  return pins;
}

}  // namespace

LoadedModel load_graph(const std::string& path, const Options& options) {
  std::string content = read_file(path);
  const bool onnx = program::looks_like_onnx(content);
  if (!onnx && (options.shard > 0 || !options.dims.empty()))
    throw InputError(
        fmt::format("{}: --{} is for ONNX models; required one", path, options.shard > 0 ? "shard" : "dim"));
  LoadedModel loaded = onnx ? load_model(path, std::move(content), options)
                       : program::looks_like_ein(content)
                           ? LoadedModel{lower_for(path, content, options.machine)}
                           : LoadedModel{parse_graph(path, content, {.repair = options.repair})};
  if (!options.quiet)
    for (const std::string& warning : loaded.warnings) complain("warning: " + warning);
  return loaded;
}

Study::Study(const std::string& path, const Options& options)
    : Study(path, load_graph(path, options), load_machine(options.machine), options) {}

Study::Study(std::string path, LoadedModel loaded, Machine machine, const Options& options)
    : path_(std::move(path)),
      loaded_(std::move(loaded)),
      machine_(std::move(machine)),
      costs_(loaded_.graph, machine_),
      problem_(costs_, rules_from(options, machine_.link_model()), parse_pins(loaded_.graph, machine_, options.pins)) {}

std::string Study::show_time(Seconds value) const { return format_time(value, graph().unitless()); }

Outcome outcome_of(const Study& study, const Options& options, const LowerBound& bound) {
  Outcome outcome;
  outcome.made.version = DOPPLER_VERSION;
  outcome.made.budget = describe_budget(options);
  outcome.made.seed = options.seed;
  outcome.made.graph = study.path();
  outcome.made.machine = study.machine().name();
  outcome.made.discipline = to_string(study.problem().rules().discipline);
  outcome.made.links = to_string(study.problem().rules().links);
  outcome.made.lower_bound = bound.value;
  outcome.bound_kind = bound.kind;
  outcome.unitless = study.graph().unitless();
  return outcome;
}

Outcome outcome_of(const Study& study, const Options& options, const Result& result) {
  Outcome outcome = outcome_of(study, options, result.bound);
  outcome.made.method = result.method;
  outcome.made.winner = result.winner;
  outcome.made.evaluations = result.evaluations;
  outcome.made.makespan = result.makespan;
  outcome.gap = result.gap;
  outcome.feasible = result.feasible;
  // The bound is for times without noise.
  outcome.optimal = result.optimal && result.feasible && study.problem().rules().noise == 0;
  outcome.seconds = result.seconds;
  return outcome;
}

std::optional<Seconds> expected_on_machine(const Study& study, const Placement& placement) {
  const double jitter = study.machine().jitter();
  if (study.problem().rules().noise > 0 || jitter == 0) return std::nullopt;
  return expected_makespan(study.problem(), placement, jitter);
}

std::string show_gap(const Outcome& outcome) {
  if (outcome.optimal) return "0 %, proven optimal";
  return fmt::format("{:.1f} %", 100 * outcome.gap);
}

std::string describe_overflow(const Study& study, const Timeline::Overflow& overflow) {
  return fmt::format("{}: op '{}' needs {} on device '{}'; required at most {}", study.path(),
                     study.graph().name(overflow.op), format_bytes(overflow.needed),
                     study.machine().device(overflow.device).name, format_bytes(overflow.capacity));
}

std::string describe_run(const Study& study, const Outcome& outcome, const Timeline& timeline) {
  const Traffic moved = traffic(timeline, study.graph());
  std::string text = fmt::format("makespan     {}{}\n", study.show_time(timeline.makespan),
                                 timeline.feasible() ? "" : "  INFEASIBLE: exceeds memory");
  if (outcome.expected)
    text += fmt::format("expected     {} (times vary by {:.1f} % on this machine)\n",
                        study.show_time(*outcome.expected), 100 * study.machine().jitter());
  text += fmt::format("lower bound  {} ({}{})\n", study.show_time(outcome.made.lower_bound),
                      to_string(outcome.bound_kind), study.problem().rules().noise > 0 ? ", without noise" : "");
  text += fmt::format("gap          {}\n", show_gap(outcome));
  text += fmt::format("transfers    {}, {}\n", moved.transfers, format_bytes(moved.bytes));
  return text + "\n" + device_table(timeline, study.machine());
}

}  // namespace doppler
