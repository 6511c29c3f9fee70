#pragma once

#include "doppler/report/is.h"
#include "doppler/report/schedule_fields.h"
#include "doppler/results.h"

// The fields of every result but schedules. Internal to doppler/report: json.cpp has the archives, and says what each
// call means.
namespace doppler {

inline double ratio(double a, double b) { return b > 0 ? a / b : 0; }

template <typename Archive, Is<DeviceUse> T>
void fields(Archive& a, T& use) {
  a("name", use.name);
  a("ops", use.ops);
  a("busy", use.busy);
  a("utilisation", use.utilisation);
  a("peak_memory", use.peak_memory);
  a("memory", use.memory);
  a("activity", use.activity);
}
template <typename Archive, Is<Traffic> T>
void fields(Archive& a, T& traffic) {
  a("count", traffic.transfers);
  a("bytes", traffic.bytes);
}
template <typename Archive, Is<OverflowFact> T>
void fields(Archive& a, T& overflow) {
  a("op", overflow.op);
  a("device", overflow.device);
  a("needed", overflow.needed);
  a("capacity", overflow.capacity);
}

template <typename Archive, Is<Outcome> T>
void fields(Archive& a, T& outcome) {
  a("graph", outcome.made.graph);
  a("machine", outcome.made.machine);
  a("discipline", outcome.made.discipline);
  a("links", outcome.made.links);
  a.unit("unit", outcome.unitless);
  a.unless(outcome.reason, "makespan", outcome.made.makespan);
  a("lower_bound", outcome.made.lower_bound);
  a("bound_kind", outcome.bound_kind);
  a.unless(outcome.reason, "gap", outcome.gap);
  a("optimal", outcome.optimal);
  a("feasible", outcome.feasible);
  a.or_absent("reason", outcome.reason);
  a.or_absent("objective", outcome.objective);
  a("expected", outcome.expected);
  if (outcome.expected) {
    a("expected_error", outcome.expected_error);
    a("p95", outcome.p95);
    a("expected_bound", outcome.expected_bound);
  }
  a.newer("jitter", outcome.jitter);
  a.or_absent("doppler", outcome.made.version);
  a.or_absent("budget", outcome.made.budget);
}
template <typename Archive, Is<Outcome> T>
void method_fields(Archive& a, T& outcome) {
  a("method", outcome.made.method);
  a("winner", outcome.made.winner);
  a("seconds", outcome.seconds);
  a("evaluations", outcome.made.evaluations);
  a("seed", outcome.made.seed);
}
template <typename Archive, Is<SimulationResult> T>
void fields(Archive& a, T& result) {
  fields(a, result.outcome);
  a("overflow", result.overflow);
  a("devices", result.devices);
  a("transfers", result.transfers);
  a("schedule", result.schedule);
}
template <typename Archive, Is<PlaceResult::ShardHint> T>
void fields(Archive& a, T& hint) {
  a("parts", hint.parts);
  a("makespan", hint.makespan);
}
template <typename Archive, Is<PlaceResult> T>
void fields(Archive& a, T& result) {
  fields(a, result.run);
  method_fields(a, result.run.outcome);
  a("ops", result.ops);
  a("edges", result.edges);
  a.or_null("single_device_makespan", result.single_device);
  a("devices_used", result.devices_used);
  a("parallelism", result.parallelism);
  a("shard", result.shard);
  a("hint", result.hint);
  a.placement("placement", result.placement, result.run.outcome.made);
}
template <typename Archive, Is<ComparisonRow> T>
void fields(Archive& a, T& row) {
  fields(a, row.outcome);
  method_fields(a, row.outcome);
  a("ops", row.ops);
  a("added", row.added);
  a("utilisation", row.utilisation);
}
template <typename Archive, Is<Comparison> T>
void fields(Archive& a, T& comparison) {
  a.derived("format", "doppler-comparison");
  a("results", comparison.rows);
}

template <typename Archive, Is<ProductShare> T>
void fields(Archive& a, T& product) {
  a("dtype", product.dtype);
  a("peak_flops_per_second", product.peak);
  a("flops_per_second", product.products);
  a.derived("share_of_peak", product.share());
}
template <typename Archive, Is<KindShare> T>
void fields(Archive& a, T& share) {
  a("kind", share.kind);
  a("ops", share.ops);
  a("work", share.work);
  a("flops", share.flops);
  a("flops_share", share.flops_share);
  a("bytes", share.bytes);
  a("bytes_share", share.bytes_share);
}
template <typename Archive, Is<GraphFacts> T>
void fields(Archive& a, T& facts) {
  a("graph", facts.graph);
  a("format", facts.format);
  a("ops", facts.ops);
  a("tensors", facts.tensors);
  a("edges", facts.edges);
  a("tensor_bytes", facts.tensor_bytes);
  a.derived("parameter_bytes", facts.model ? facts.model->parameter_bytes : facts.parameter_bytes);
  a("resident_bytes", facts.parameter_bytes);
  a("peak_activation_bytes", facts.peak_activation_bytes);
  a.derived("flops", facts.model ? facts.model->flops : facts.flops);
  a("depth", facts.depth);
  a("width", facts.width);
  a("unit", facts.measure);
  a("work", facts.work);
  a("critical_path", facts.critical_path);
  a.derived("average_parallelism", ratio(facts.work, facts.critical_path));
  a.derived("communication_to_computation",
            facts.communication ? std::optional(ratio(*facts.communication, facts.work)) : std::nullopt);
  a("communication", facts.communication);
  a.or_absent("machine", facts.machine);
  if (a.section("lower_bound", facts.bound)) {
    a("lower_bound", facts.bound->value);
    a("bound_kind", facts.bound->kind);
  }
  if (a.section("nodes", facts.model)) {
    a("macs", facts.model->macs);
    a("parameters", facts.model->parameters);
    a("nodes", facts.model->nodes);
    a("folded_nodes", facts.model->folded_nodes);
    a("model_flops", facts.model->flops);
    a("model_parameter_bytes", facts.model->parameter_bytes);
  }
  a("kinds", facts.kinds);
  a("bytes", facts.bytes);
  a("op_flops", facts.flops);
  a("products", facts.products);
  a("warnings", facts.warnings);
}

template <typename Archive, Is<RewriteResult::Pass> T>
void fields(Archive& a, T& pass) {
  a("name", pass.name);
  a("found", pass.found);
}
template <typename Archive, Is<RewriteResult> T>
void fields(Archive& a, T& result) {
  a("model", result.model);
  a("nodes", result.nodes);
  a("folded_nodes", result.folded_nodes);
  a("ops", result.ops);
  a("passes", result.passes);
}
template <typename Archive, Is<PlanResult::Cut> T>
void fields(Archive& a, T& cut) {
  a("expression", cut.expression);
  a("kernel", cut.kernel);
  a("cut", cut.cut);
  a("blocks", cut.blocks);
}
template <typename Archive, Is<PlanResult::Rival> T>
void fields(Archive& a, T& rival) {
  a("plan", rival.plan);
  a("moved_bytes", rival.moved);
  a("messages", rival.messages);
  a("compute", rival.compute);
  a("estimate", rival.estimate);
  a("relational", rival.relational);
  a("resident_bytes", rival.resident);
}
template <typename Archive, Is<PlanResult> T>
void fields(Archive& a, T& result) {
  a("program", result.program);
  a("plan", result.plan);
  a("expressions", result.expressions);
  a("parts", result.parts);
  a("sites", result.sites);
  a("cuts", result.cuts);
  a("plans", result.plans);
  a("relations", result.relations);
}

template <typename Archive, Is<RunResult::Device> T>
void fields(Archive& a, T& device) {
  a("name", device.name);
  a("ops", device.ops);
  a("busy", device.time.busy);
  a("copying", device.time.copying);
  a("data", device.time.data);
  a("channel", device.time.channel);
  a("memory", device.time.memory);
  a.newer("others", device.time.others);
  a("done", device.time.done);
  a("peak_memory", device.peak_memory);
}
template <typename Archive, Is<RunResult> T>
void fields(Archive& a, T& run) {
  a("graph", run.graph);
  a("machine", run.machine);
  a("devices", run.devices);
  a.unit("unit", run.unitless);
  a("measured", run.measured);
  a("times", run.times);
  a("predicted", run.predicted);
  a("timed_one_device", run.timed_one_device);
  a("one_device", run.one_device);
  if (run.one_device) a.derived("speed_up", ratio(*run.one_device, run.measured));
  a("interrupted", run.interrupted);
  a.newer("asked_for", run.asked_for);
  a.newer("others", run.others);
  a.or_absent("noise", run.noise);
  a("last", run.last);
  a("device_times", run.device_times);
  a("schedule", run.schedule);
  a("simulated", run.simulated);
}

template <typename Archive, Is<ServiceResult::Drift> T>
void fields(Archive& a, T& drift) {
  a("device", drift.device);
  a("name", drift.name);
  a("change", drift.change);
  a("factor", drift.factor);
  a("run", drift.run);
  a("before", drift.before);
  a("right_after", drift.right_after);
}
template <typename Archive, Is<ServiceResult::Event> T>
void fields(Archive& a, T& event) {
  a("run", event.run);
  a("event", event.kind);
  a("text", event.text);
}
template <typename Archive, Is<ServiceResult> T>
void fields(Archive& a, T& service) {
  a("graph", service.graph);
  a("title", service.title);
  a("machine", service.machine);
  a.unit("unit", service.unitless);
  a("runs", service.runs);
  a("explored", service.explored);
  a("changes", service.changes);
  a("lost", service.lost);
  a("resumed_at", service.resumed_at);
  a("drifts", service.drifts);
  a("times", service.times);
  a("challengers", service.challengers);
  a("at_first", service.at_first);
  a("at_the_end", service.at_the_end);
  a("events", service.events);
  a("ended", service.ended);
}

template <typename Archive, Is<Validity::Sample> T>
void fields(Archive& a, T& sample) {
  a("origin", sample.origin);
  a("simulated", sample.simulated);
  a("measured", sample.measured);
  a("times", sample.times);
}
template <typename Archive, Is<Validity> T>
void fields(Archive& a, T& of) {
  a("graph", of.graph);
  a("pearson", of.pearson);
  a("spearman", of.spearman);
  a("pearson_of_medians", of.pearson_of_medians);
  a("spearman_of_medians", of.spearman_of_medians);
  a("mean_error", of.mean_error);
  a("bias", of.bias);
  a("repeatability", of.repeatability);
  a("samples", of.samples);
}
template <typename Archive, Is<ValidityResult> T>
void fields(Archive& a, T& validity) {
  a("results", validity.graphs);
}

template <typename Archive, Is<CalibrationResult::Kind> T>
void fields(Archive& a, T& kind) {
  a("kind", kind.kind);
  a("dtype", kind.dtype);
  a("shapes", kind.shapes);
  a("samples", kind.samples);
  a("flops_per_second", kind.flops_per_second);
  a("bytes_per_second", kind.bytes_per_second);
  a("spread", kind.spread);
  a("jitter", kind.jitter);
  a("interference", kind.interference);
}
template <typename Archive, Is<CalibrationResult::Fit::Quantile> T>
void fields(Archive& a, T& quantile) {
  a("share", quantile.share);
  a("measured", quantile.measured);
  a("modelled", quantile.modelled);
}
template <typename Archive, Is<CalibrationResult::Fit> T>
void fields(Archive& a, T& fit) {
  a("samples", fit.samples);
  a("distance", fit.distance);
  a("quantiles", fit.quantiles);
  a("work_measured", fit.work_measured);
  a("work_modelled", fit.work_modelled);
}
template <typename Archive, Is<CalibrationResult> T>
void fields(Archive& a, T& calibration) {
  a("machine", calibration.machine);
  a("links", calibration.links);
  a("emulated", calibration.emulated);
  a("devices", calibration.devices);
  a("transfers", calibration.transfers);
  a("kinds", calibration.kinds);
  a.newer("products", calibration.products);
  a("op_excess", calibration.op_excess);
  a("link_excess", calibration.link_excess);
  a("latency", calibration.latency);
  a("bytes_per_second", calibration.bytes_per_second);
  a("jitter", calibration.jitter);
  a("transfer_jitter", calibration.transfer_jitter);
  a("tail_probability", calibration.tail_probability);
  a("tail_factor", calibration.tail_factor);
  a("fit", calibration.fit);
  a("stretch", calibration.stretch);
  a.newer("others", calibration.others);
  a.or_absent("noise", calibration.noise);
}

template <typename Archive, Is<TrainingResult::Task> T>
void fields(Archive& a, T& task) {
  a("graph", task.graph);
  a.unit("unit", task.unitless);
  a.or_null("best", task.best);
  a("lower_bound", task.lower_bound);
  a.or_absent("objective", task.objective);
  a("jitter", task.jitter);
  if (task.best && task.lower_bound) a.derived("gap", gap(*task.best, *task.lower_bound));
}
template <typename Archive, Is<TrainingResult::System> T>
void fields(Archive& a, T& system) {
  a("runs", system.runs);
  a("reused", system.reused);
  a("refused", system.refused);
  a("finished", system.finished);
  a("changed", system.changed);
  a("before", system.before);
  a("after", system.after);
  a("p", system.p);
  a("finalists", system.finalists);
  a.unit("unit", system.unitless);
}
template <typename Archive, Is<TrainingResult> T>
void fields(Archive& a, T& training) {
  a("directory", training.directory);
  a("episodes", training.episodes);
  a("seconds", training.seconds);
  a("seed", training.seed);
  a("held_out", training.held_out);
  a("system", training.system);
  a("results", training.tasks);
}

template <typename Archive, Is<WhyResult::Step> T>
void fields(Archive& a, T& step) {
  a("name", step.name);
  a("device", step.device);
  a("waits_for", step.waits_for);
  a("transfer", step.transfer);
  a("start", step.start);
  a("end", step.end);
}
template <typename Archive, Is<WhyResult::Elsewhere> T>
void fields(Archive& a, T& elsewhere) {
  a("device", elsewhere.device);
  a("makespan", elsewhere.makespan);
  a.or_absent("reason", elsewhere.reason);
}
template <typename Archive, Is<WhyResult::Unit> T>
void fields(Archive& a, T& unit) {
  a("name", unit.name);
  a("device", unit.device);
  a.or_absent("cause", unit.cause);
  a("ops", unit.ops);
  a("time", unit.time);
  a("elsewhere", unit.elsewhere);
}
template <typename Archive, Is<WhyResult::LongTransfer> T>
void fields(Archive& a, T& transfer) {
  a("op", transfer.op);
  a("from", transfer.from);
  a("to", transfer.to);
  a("bytes", transfer.bytes);
  a("seconds", transfer.seconds);
  a("queued", transfer.queued);
}
template <typename Archive, Is<WhyResult::Idle> T>
void fields(Archive& a, T& idle) {
  a("device", idle.device);
  a("busy", idle.time.busy);
  a("copying", idle.time.copying);
  a("data", idle.time.data);
  a("channel", idle.time.channel);
  a("memory", idle.time.memory);
  a("done", idle.time.done);
  a.or_absent("blamed", idle.blamed);
  a("blamed_seconds", idle.blamed_seconds);
}
template <typename Archive, Is<WhyResult::Help> T>
void fields(Archive& a, T& help) {
  a("change", help.change);
  a("makespan", help.makespan);
}
template <typename Archive, Is<WhyResult> T>
void fields(Archive& a, T& why) {
  a("graph", why.graph);
  a("machine", why.machine);
  a.unit("unit", why.unitless);
  a("feasible", why.feasible);
  a("makespan", why.makespan);
  a("chain_compute", why.chain_compute);
  a("chain_transfer", why.chain_transfer);
  a("chain_idle", why.chain_idle);
  a("limit", why.limit);
  a("because", why.because);
  a("help", why.help);
  a("units", why.units);
  a("transfers", why.transfers);
  a("idle", why.idle);
  a("chain", why.chain);
}
template <typename Archive, Is<DiffResult::Side> T>
void fields(Archive& a, T& side) {
  a.or_absent("placement", side.placement);
  a("makespan", side.makespan);
  a("feasible", side.feasible);
  a("devices", side.devices);
  a("moved_bytes", side.moved);
  a("chain_compute", side.chain_compute);
  a("chain_transfer", side.chain_transfer);
  a("chain_idle", side.chain_idle);
}
template <typename Archive, Is<DiffResult::Moved> T>
void fields(Archive& a, T& moved) {
  a("name", moved.name);
  a("from", moved.from);
  a("to", moved.to);
  a("ops", moved.ops);
  a("alone", moved.alone);
}
template <typename Archive, Is<DiffResult> T>
void fields(Archive& a, T& diff) {
  a("graph", diff.graph);
  a("machine", diff.machine);
  a.unit("unit", diff.unitless);
  a("a", diff.a);
  a("b", diff.b);
  a("ops_moved", diff.ops_moved);
  a("moved", diff.moved);
}

template <typename Archive, Is<MachineList::Entry> T>
void fields(Archive& a, T& entry) {
  a("name", entry.name);
  a("summary", entry.summary);
  a("source", entry.source);
  a("memory", entry.memory);
}
template <typename Archive, Is<MachineList> T>
void fields(Archive& a, T& list) {
  a("kinds", list.kinds);
  a("presets", list.presets);
}

template <typename Archive, Is<SplitResult::Value> T>
void fields(Archive& a, T& value) {
  a("name", value.name);
  a("dtype", value.dtype);
  a("shape", value.shape);
  a("bytes", value.bytes);
  a("from", value.from);
}
template <typename Archive, Is<SplitResult::Part> T>
void fields(Archive& a, T& part) {
  a("file", part.file);
  a("device", part.device);
  a("level", part.level);
  a("nodes", part.nodes);
  a("parameter_bytes", part.parameter_bytes);
  a("inputs", part.inputs);
  a("outputs", part.outputs);
}
template <typename Archive, Is<SplitResult> T>
void fields(Archive& a, T& split) {
  a("graph", split.graph);
  a("machine", split.machine);
  a("inputs", split.inputs);
  a("outputs", split.outputs);
  a.or_absent("unchecked", split.unchecked);
  a("parts", split.parts);
}

}  // namespace doppler
