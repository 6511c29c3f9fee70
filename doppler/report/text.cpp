#include "doppler/report/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/statistics.h"
#include "doppler/report/clean_names.h"
#include "doppler/report/table.h"
#include "doppler/report/text_reasons.h"

namespace doppler {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

// Up to this parallelism a graph is called a chain.
constexpr double kAlmostAChain = 1.2;
// Up to this gap to a lower bound one device is enough.
constexpr double kEnough = 0.05;

char shade(double fraction) {
  constexpr double kRounding = 1e-9;  // sums of many short ops
  if (fraction <= kRounding) return ' ';
  if (fraction >= 1 - kRounding) return '#';
  return fraction < 1.0 / 3 ? '.' : fraction < 2.0 / 3 ? '-' : '=';
}

// ---- simulate, place, compare ----

// Says what placements were judged by and, where times vary, how much they do.
std::string objective_name(const std::string& objective, double jitter) {
  if (objective == "exact" || jitter <= 0) return objective;
  return fmt::format("{} (jitter {:.3g})", objective, jitter);
}

std::string text_of(const SimulationResult& result) {
  const Outcome& outcome = result.outcome;
  const auto time = [&](Seconds value) { return format_time(value, outcome.unitless); };
  std::string text = fmt::format("makespan     {}{}\n", time(outcome.made.makespan),
                                 outcome.feasible ? "" : "  INFEASIBLE: exceeds memory");
  if (outcome.expected)
    text += fmt::format("expected     {} ± {}, 95 % within {}{} (times vary by {} on this machine)\n",
                        time(*outcome.expected), time(outcome.expected_error.value_or(0)),
                        time(outcome.p95.value_or(*outcome.expected)),
                        outcome.expected_bound ? fmt::format(", at best {}", time(*outcome.expected_bound)) : "",
                        percent(outcome.jitter));
  else if (outcome.jitter > 0 && outcome.feasible)
    text +=
        fmt::format("expected     not known: times vary by {} on this machine, and there was no time to draw them\n",
                    percent(outcome.jitter));
  text += fmt::format("lower bound  {} ({})\n", time(outcome.made.lower_bound), to_string(outcome.bound_kind));
  text += fmt::format("gap          {}\n", outcome.optimal ? "0 %, proven optimal" : percent(outcome.gap));
  text += fmt::format("transfers    {}, {}\n", result.transfers.transfers, format_bytes(result.transfers.bytes));
  return text + "\n" + device_table(result.devices);
}

// Says why a placement uses one of several devices, with what is proven of it.
std::string note_on_one_device(const PlaceResult& result) {
  if (result.devices_used != 1 || result.run.devices.size() < 2) return {};
  const Outcome& outcome = result.run.outcome;
  const std::string why =
      result.parallelism < kAlmostAChain
          ? fmt::format("there is next to no parallelism (work over longest chain {:.2f})", result.parallelism)
          : fmt::format("moving data would cost more than working at the same time saves (parallelism {:.2f})",
                        result.parallelism);
  std::string text = outcome.gap <= kEnough
                         ? fmt::format("one device is enough: {}, and no placement can be more than {} faster\n", why,
                                       percent(outcome.gap))
                         : fmt::format("'{}' put everything on one device; at most {} could be won by using more\n",
                                       outcome.made.method, percent(outcome.gap));
  if (result.hint)
    text += fmt::format("cutting ops helps: --shard {} is predicted to take {}, {:.2f} times as fast\n",
                        result.hint->parts, format_time(result.hint->makespan, outcome.unitless),
                        outcome.expected.value_or(outcome.made.makespan) / result.hint->makespan);
  return text;
}

std::string text_of(const PlaceResult& result) {
  const Outcome& outcome = result.run.outcome;
  const Provenance& made = outcome.made;
  std::string text = fmt::format("graph        {}, {} ops, {} edges\n", made.graph, result.ops, result.edges);
  if (result.shard > 0) text += fmt::format("cut          every op in at most {} blocks\n", result.shard);
  text += fmt::format("machine      {}, {} devices\n", made.machine, result.run.devices.size());
  if (!outcome.objective.empty())
    text += fmt::format("objective    {}\n", objective_name(outcome.objective, outcome.jitter));
  text += fmt::format("method       {}{}, {:.2f} s, {} evaluations, seed {}\n", made.method,
                      made.winner == made.method ? "" : fmt::format(" (won by {})", made.winner), outcome.seconds,
                      made.evaluations, made.seed);
  if (result.single_device && made.makespan > 0)
    text +=
        fmt::format("speed-up     {:.2f} over the best single device ({}{})\n", *result.single_device / made.makespan,
                    format_time(*result.single_device, outcome.unitless), result.shard > 0 ? ", uncut" : "");
  text += text_of(result.run);
  const std::string note = note_on_one_device(result);
  return note.empty() ? text : text + "\n" + note;
}

std::string note(const ComparisonRow& row) {
  const Outcome& outcome = row.outcome;
  std::vector<std::string> notes;
  if (!outcome.feasible) notes.push_back("infeasible: " + outcome.reason);
  if (outcome.optimal) notes.push_back("proven optimal");
  if (outcome.made.winner != outcome.made.method) notes.push_back("won by " + outcome.made.winner);
  if (row.added) notes.push_back("added: strongest cheap baseline");
  return fmt::format("{}", fmt::join(notes, ", "));
}

// The rows of one graph. Methods may have raised its bound; the least is what was known before.
std::string text_of(std::span<const ComparisonRow> rows) {
  const auto weakest = std::min_element(rows.begin(), rows.end(), [](const ComparisonRow& a, const ComparisonRow& b) {
    return a.outcome.made.lower_bound < b.outcome.made.lower_bound;
  });
  const Outcome& first = weakest->outcome;
  const auto time = [&](Seconds value) { return format_time(value, first.unitless); };
  std::string text = fmt::format("{}: {} ops on {}, {}, links {}, lower bound {} ({}), objective {}\n\n",
                                 first.made.graph, weakest->ops, first.made.machine, first.made.discipline,
                                 first.made.links, time(first.made.lower_bound), to_string(first.bound_kind),
                                 objective_name(first.objective, first.jitter));
  const bool varies =
      std::any_of(rows.begin(), rows.end(), [](const ComparisonRow& row) { return row.outcome.expected.has_value(); });
  std::vector<Table::Column> columns = {{"method", Table::Align::left}, {"makespan"}};
  if (varies) columns.push_back({"expected"});
  const bool by_quantile = varies && first.objective == "p95";
  if (by_quantile) columns.push_back({"95 %"});
  columns.insert(columns.end(), {{"gap"}, {"time"}, {"", Table::Align::left}});
  Table table(columns);
  const auto best = std::min_element(rows.begin(), rows.end(), [](const ComparisonRow& a, const ComparisonRow& b) {
    return better(a.outcome, b.outcome);
  });
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    const Outcome& outcome = row->outcome;
    std::vector<std::string> cells{outcome.made.method, outcome.feasible ? time(outcome.made.makespan) : "-"};
    if (varies) cells.push_back(outcome.feasible && outcome.expected ? time(*outcome.expected) : "-");
    if (by_quantile) cells.push_back(outcome.feasible && outcome.p95 ? time(*outcome.p95) : "-");
    cells.insert(cells.end(),
                 {outcome.feasible ? percent(outcome.gap) : "-", fmt::format("{:.2f} s", outcome.seconds), note(*row)});
    table.add_row(std::move(cells), row == best && outcome.feasible);
  }
  return text + table.text();
}

std::string text_of(const Comparison& comparison) {
  std::string text;
  const std::vector<ComparisonRow>& rows = comparison.rows;
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].outcome.made.graph == rows[begin].outcome.made.graph) ++end;
    text += (text.empty() ? "" : "\n") + text_of(std::span(rows).subspan(begin, end - begin));
  }
  return text;
}

// ---- info ----

std::string text_of(const std::vector<ProductShare>& products) {
  std::string text;
  for (const ProductShare& product : products)
    text += fmt::format("{} {:.0f} of {:.0f} GFLOP/s ({:.0f} % of the peak), ", product.dtype, product.products / 1e9,
                        product.peak / 1e9, 100 * product.share());
  return text + "on one core of this box\n";
}

std::string text_of(const GraphFacts& facts) {
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
  const auto work = [&](double value) {
    if (facts.measure == GraphFacts::Measure::flops) return fmt::format("{:.4g} flops", value);
    return format_time(value, facts.measure == GraphFacts::Measure::unitless);
  };
  std::string text = fmt::format("graph          {} ({})\n", facts.graph, facts.format);
  text += fmt::format("ops            {}\ntensors        {}, {}\nedges          {}\n", facts.ops, facts.tensors,
                      format_bytes(facts.tensor_bytes), facts.edges);
  if (const auto& model = facts.model) {
    text += fmt::format("nodes          {}, of which {} folded\n", model->nodes, model->folded_nodes);
    text += fmt::format("parameters     {:.4g} M, {}\n", static_cast<double>(model->parameters) / 1e6,
                        format_bytes(model->parameter_bytes));
    text += fmt::format("arithmetic     {:.4g} GMACs, {:.4g} Gflops\n", model->macs / 1e9, model->flops / 1e9);
  } else {
    text += fmt::format("parameters     {}\n", format_bytes(facts.parameter_bytes));
  }
  text += fmt::format("activations    {} at most at once, on one device\n", format_bytes(facts.peak_activation_bytes));
  text +=
      fmt::format("depth          {} levels\nwidth          {} ops in the widest level\n", facts.depth, facts.width);
  text += fmt::format("work           {}\ncritical path  {}\n", work(facts.work), work(facts.critical_path));
  text += fmt::format("parallelism    {:.2f} on average (work over critical path)\n",
                      ratio(facts.work, facts.critical_path));
  if (facts.communication)
    text += fmt::format("communication  {:.3g} of the work, if every edge is moved\n",
                        ratio(*facts.communication, facts.work));
  if (facts.bound)
    text += fmt::format("lower bound    {} ({}) on {}\n", work(facts.bound->value), to_string(facts.bound->kind),
                        facts.machine);
  if (!facts.products.empty()) text += "products       " + text_of(facts.products);
  Table table({{"kind", Table::Align::left}, {"ops"}, {"work"}, {"share"}, {"of flops"}, {"of bytes"}});
  for (const KindShare& share : facts.kinds)
    table.add_row({share.kind, std::to_string(share.ops), work(share.work), percent(ratio(share.work, facts.work)),
                   percent(share.flops_share), percent(share.bytes_share)});
  return text + "\n" + table.text();
}

// ---- explain ----

std::string text_of(const PlanResult& result) {
  std::string text = fmt::format("{}: {} expressions in at most {} blocks each, plan {}\n\n", result.program,
                                 result.expressions, result.parts, result.plan);
  Table cuts(
      {{"expression", Table::Align::left}, {"kernel", Table::Align::left}, {"cut", Table::Align::left}, {"blocks"}});
  for (const PlanResult::Cut& cut : result.cuts)
    cuts.add_row({cut.expression, cut.kernel, cut.cut, std::to_string(cut.blocks)});
  Table plans(
      {{"plan", Table::Align::left}, {"moved"}, {"messages"}, {"compute"}, {"estimate"}, {"relational"}, {"resident"}});
  for (const PlanResult::Rival& rival : result.plans)
    plans.add_row({rival.plan, format_bytes(static_cast<Bytes>(rival.moved)), fmt::format("{:.0f}", rival.messages),
                   format_seconds(rival.compute), format_seconds(rival.estimate), format_seconds(rival.relational),
                   format_bytes(static_cast<Bytes>(rival.resident))});
  return text + cuts.text() + "\nplans compared (estimate: no overlap between expressions)\n" + plans.text() +
         fmt::format("\nrelations on {} sites\n{}\n", result.sites, fmt::join(result.relations, "\n"));
}

std::string text_of(const RewriteResult& result) {
  std::string text = fmt::format("{}: {} nodes, {} of them folded, become {} ops\n", result.model, result.nodes,
                                 result.folded_nodes, result.ops);
  if (result.passes.empty()) return text + "not rewritten\n";
  Table table({{"rewrite", Table::Align::left}, {"found"}});
  for (const RewriteResult::Pass& pass : result.passes) table.add_row({pass.name, std::to_string(pass.found)});
  return text + table.text();
}

// ---- run, validate, calibrate ----

std::string text_of(const RunResult& run) {
  const auto time = [&](Seconds value) { return format_time(value, run.unitless); };
  std::string text = fmt::format("measured    {}  (median of {}; 10 % to 90 %: {} to {})\n", time(run.measured),
                                 run.times.size(), time(quantile(run.times, 0.1)), time(quantile(run.times, 0.9)));
  text += fmt::format("predicted   {}  ({})\n", time(run.predicted), signed_percent(run.predicted / run.measured - 1));
  if (run.one_device)
    text += fmt::format("one device  {}  (speed-up {:.2f})\n", time(*run.one_device), *run.one_device / run.measured);
  else if (run.timed_one_device && !run.interrupted)
    text += "one device  cannot hold the graph\n";
  if (!run.noise.empty()) text += fmt::format("noise       {}: these times mean little\n", run.noise);
  if (run.devices == "emulated") text += "devices     emulated: ops take their modelled time\n";
  Table table({{"device", Table::Align::left},
               {"ops"},
               {"busy"},
               {"copying"},
               {"data"},
               {"channel"},
               {"memory"},
               {"others"},
               {"done"},
               {"peak memory"}});
  for (const RunResult::Device& device : run.device_times) {
    const auto share = [&](Seconds part) { return percent(part / run.last); };
    table.add_row({device.name, fmt::to_string(device.ops), share(device.time.busy), share(device.time.copying),
                   share(device.time.data), share(device.time.channel), share(device.time.memory),
                   share(device.time.others), share(device.time.done), format_bytes(device.peak_memory)});
  }
  return text + "\n" + table.text();
}

std::string text_of(const ServiceResult& service) {
  const auto time = [&](const std::optional<Seconds>& value) {
    return value ? format_time(*value, service.unitless) : "-";
  };
  std::string text =
      fmt::format("runs         {}, {} of them to try a challenger ({})\n", service.runs, service.explored,
                  percent(static_cast<double>(service.explored) / static_cast<double>(service.runs)));
  text += fmt::format("at first     {}\n", time(service.at_first));
  for (const ServiceResult::Drift& drift : service.drifts)
    text += fmt::format("drift        '{}' {} from run {} on: {} before, {} right after\n", drift.name,
                        drift.change == "slower" ? fmt::format("takes {} times as long", drift.factor)
                                                 : fmt::format("is {}", drift.change),
                        drift.run, time(drift.before), time(drift.right_after));
  text += fmt::format("at the end   {}\n", time(service.at_the_end));
  text += fmt::format("changes      {} of the placement\n", service.changes);
  if (service.lost > 0) text += fmt::format("lost         {} runs, which were repeated\n", service.lost);
  for (const ServiceResult::Event& event : service.events)
    if (event.kind != "challenge" && event.kind != "no_better" && event.kind != "dropped")
      text += fmt::format("  run {:>5}  {}: {}\n", event.run, event.kind, event.text);
  if (service.ended) text += fmt::format("ended early  {}\n", *service.ended);
  return text;
}

std::string text_of(const ValidityResult& validity) {
  Table table({{"graph", Table::Align::left},
               {"placements"},
               {"Pearson"},
               {"Spearman"},
               {"by medians"},
               {"repeatable"},
               {"mean error"},
               {"bias"},
               {"fastest"},
               {"slowest"}});
  for (const Validity& of : validity.graphs) {
    std::vector<double> measured;
    for (const Validity::Sample& sample : of.samples) measured.push_back(sample.measured);
    table.add_row({of.graph, fmt::to_string(of.samples.size()), fmt::format("{:.3f}", of.pearson),
                   fmt::format("{:.3f}", of.spearman),
                   fmt::format("{:.3f} {:.3f}", of.pearson_of_medians, of.spearman_of_medians),
                   of.repeatability ? fmt::format("{:.3f}", *of.repeatability) : "-", percent(of.mean_error),
                   signed_percent(of.bias), format_seconds(quantile(measured, 0)),
                   format_seconds(quantile(measured, 1))});
  }
  return table.text();
}

std::string text_of_jitter(const CalibrationResult& calibration) {
  std::string text = fmt::format("times vary by {} within a run", percent(calibration.jitter));
  if (calibration.transfer_jitter != calibration.jitter)
    text += fmt::format(", those of transfers by {}", percent(calibration.transfer_jitter));
  if (calibration.tail_probability > 0)
    text += fmt::format("; {:.2f} % of the work takes {:.1f} times as long", 100 * calibration.tail_probability,
                        calibration.tail_factor);
  text += "\n";
  const CalibrationResult::Fit& fit = calibration.fit;
  if (fit.samples == 0) return text;
  std::vector<std::string> quantiles;
  for (const CalibrationResult::Fit::Quantile& of : fit.quantiles)
    quantiles.push_back(fmt::format("{:.0f} % take at most {:.2f} ({:.2f})", 100 * of.share, of.measured, of.modelled));
  text += fmt::format("fit: of {} ops, {} times what is usual (in brackets what the model says);\n", fit.samples,
                      fmt::join(quantiles, ", "));
  return text + fmt::format(
                    "     the distributions differ by {:.2f} at most (Kolmogorov-Smirnov), and a device's work varies "
                    "by {} ({}) from run to run\n",
                    fit.distance, percent(fit.work_measured), percent(fit.work_modelled));
}

std::string text_of(const CalibrationResult& calibration) {
  const std::string jitter = text_of_jitter(calibration);
  if (calibration.emulated) {
    if (calibration.devices == 1)
      return fmt::format("ops take {} longer than modelled\n", format_seconds(calibration.op_excess)) + jitter;
    return fmt::format("ops take {} and transfers {} longer than modelled\n", format_seconds(calibration.op_excess),
                       format_seconds(calibration.link_excess)) +
           jitter;
  }
  Table table({{"kind", Table::Align::left},
               {"dtype", Table::Align::left},
               {"shapes"},
               {"runs"},
               {"GFLOP/s"},
               {"GB/s"},
               {"spread"},
               {"jitter"},
               {"beside others"}});
  for (const CalibrationResult::Kind& kind : calibration.kinds)
    table.add_row({kind.kind, kind.dtype, fmt::to_string(kind.shapes), fmt::to_string(kind.samples),
                   fmt::format("{:.2f}", kind.flops_per_second / 1e9),
                   fmt::format("{:.2f}", kind.bytes_per_second / 1e9), fmt::format("{:.0f} %", 100 * kind.spread),
                   percent(kind.jitter),
                   kind.interference ? fmt::format("{:+.0f} %", 100 * (*kind.interference - 1)) : "-"});
  std::string text = table.text();
  if (calibration.devices > 1) {
    const std::string rate = calibration.bytes_per_second > 0
                                 ? fmt::format("+ {:.2f} GB/s", calibration.bytes_per_second / 1e9)
                                 : "each";  // transfers of one size only
    text += fmt::format("\nlinks: {} {} ({} transfers), {}\n", format_seconds(calibration.latency), rate,
                        calibration.transfers, calibration.links);
  }
  if (!calibration.noise.empty()) text += fmt::format("noise: {}: this machine predicts little\n", calibration.noise);
  if (!calibration.products.empty()) text += "products: " + text_of(calibration.products);
  return text + jitter +
         fmt::format("runs take {:.3f} times what their ops and transfers explain; the machine's times contain it\n",
                     calibration.stretch);
}

// ---- train ----

std::string text_of(const TrainingResult::System& system) {
  const auto time = [&](Seconds value) { return format_time(value, system.unitless); };
  std::string text = fmt::format("system       {} runs; {} evaluations reused them, {} were too slow by prediction\n",
                                 system.runs, system.reused, system.refused);
  if (!system.finished) return text;
  if (system.finalists == 0)
    return text + fmt::format("measured     {} as after stage II; nothing else was worth a run\n", time(system.before));
  return text + fmt::format("measured     {} after stage II, {} the best other ({}, p {:.2g}): {}\n",
                            time(system.before), time(system.after), signed_percent(system.after / system.before - 1),
                            system.p, system.changed ? "changed" : "kept as it was");
}

std::string text_of(const TrainingResult& training) {
  std::string text = fmt::format(
      "{} episodes in {:.1f} s, {:.2f} ms each, seed {}\n", training.episodes, training.seconds,
      1e3 * training.seconds / static_cast<double>(std::max<std::uint64_t>(1, training.episodes)), training.seed);
  if (training.held_out) text += fmt::format("held out     {:.3f} of the best cheap heuristic\n", *training.held_out);
  if (training.system) text += text_of(*training.system);
  if (training.tasks.empty()) return text;
  const TrainingResult::Task& first = training.tasks.front();
  if (!first.objective.empty()) text += fmt::format("objective    {}\n", objective_name(first.objective, first.jitter));
  Table table({{"graph", Table::Align::left}, {"best found"}, {"lower bound"}, {"gap"}});
  for (const TrainingResult::Task& task : training.tasks) {
    const bool bounded = task.best && task.lower_bound;
    table.add_row({task.graph, task.best ? format_time(*task.best, task.unitless) : "-",
                   task.lower_bound ? format_time(*task.lower_bound, task.unitless) : "-",
                   bounded ? percent(gap(*task.best, *task.lower_bound)) : "-"});
  }
  return text + "\n" + table.text();
}

}  // namespace

std::string to_text(const AnyResult& result) {
  AnyResult shown = result;
  clean_names(shown);
  return std::visit([](const auto& value) { return text_of(value); }, shown);
}

std::string format_time(Seconds value, bool unitless) {
  constexpr double kExact = 0x1p53;
  if (!unitless) return format_seconds(value);
  return value == std::floor(value) && value < kExact ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value);
}

std::string device_table(const std::vector<DeviceUse>& devices) {
  const std::size_t width = devices.empty() ? 0 : devices.front().activity.size();
  Table table({{"device", Table::Align::left},
               {"ops"},
               {"busy"},
               {"peak memory"},
               {"of"},
               {fmt::format("{:<{}}", "activity", width + 2), Table::Align::left}});
  for (const DeviceUse& device : devices) {
    std::string strip;
    for (const double busy : device.activity) strip += shade(busy);
    table.add_row({device.name, std::to_string(device.ops), percent(device.utilisation),
                   format_bytes(device.peak_memory), device.memory > 0 ? format_bytes(device.memory) : "-",
                   fmt::format("|{}|", strip)});
  }
  return table.text();
}

}  // namespace doppler
