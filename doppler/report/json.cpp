#include <algorithm>
#include <array>
#include <concepts>
#include <set>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/parse_enum.h"
#include "doppler/base/terminal_text.h"
#include "doppler/graph/formats/json_reader.h"
#include "doppler/report/clean_names.h"
#include "doppler/results.h"

// Every result has one list of fields, fields(archive, result), that serves both the writer and the reader, so that
// what is written can be read, and the cleaner of names. A field is archive("key", value); an optional one that is
// empty is left out, or null where archive.or_null() says so. What follows from other fields is archive.derived():
// written for scripts, not read.
namespace doppler {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kVersion = 1;
// The kinds are in the order of the alternatives of AnyResult.
constexpr std::array<std::string_view, 11> kKinds = {"simulation", "place",       "comparison", "graph",
                                                     "plan",       "rewrite",     "run",        "service",
                                                     "validity",   "calibration", "training"};
static_assert(kKinds.size() == std::variant_size_v<AnyResult>);

constexpr std::array kBoundKinds = {LowerBound::Kind::work,          LowerBound::Kind::critical_path,
                                    LowerBound::Kind::communication, LowerBound::Kind::interval,
                                    LowerBound::Kind::search,        LowerBound::Kind::contradiction};

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

template <typename T, typename Plain>
concept Is = std::same_as<std::remove_const_t<T>, Plain>;

// ---- the fields of every result ----

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
    a("jitter", outcome.jitter);
  }
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
}
template <typename Archive, Is<PlaceResult> T>
void fields(Archive& a, T& result) {
  fields(a, result.run);
  method_fields(a, result.run.outcome);
  a("ops", result.ops);
  a("edges", result.edges);
  a.or_null("single_device_makespan", result.single_device);
  a.placement("placement", result.placement, result.run.outcome.made);
}
template <typename Archive, Is<ComparisonRow> T>
void fields(Archive& a, T& row) {
  fields(a, row.outcome);
  method_fields(a, row.outcome);
  a("ops", row.ops);
  a("added", row.added);
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
  a("last", run.last);
  a("device_times", run.device_times);
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
  a("products", calibration.products);
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

// ---- writing ----

class Writer {
 public:
  explicit Writer(ordered_json& to) : to_(to) {}

  template <typename T>
  void operator()(const char* key, const T& value) {
    to_[key] = written(value);
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) to_[key] = written(*value);
  }
  template <typename T>
  void or_null(const char* key, const std::optional<T>& value) {
    to_[key] = value ? written(*value) : ordered_json(nullptr);
  }
  void or_absent(const char* key, const std::string& text) {
    if (!text.empty()) to_[key] = text;
  }
  // Null if there is a reason for there being none.
  void unless(const std::string& reason, const char* key, double value) {
    to_[key] = reason.empty() ? ordered_json(value) : ordered_json(nullptr);
  }
  void unit(const char* key, bool unitless) { to_[key] = unitless ? "graph" : "s"; }
  void derived(const char* key, double value) { to_[key] = value; }
  void derived(const char* key, Bytes value) { to_[key] = value; }
  void derived(const char* key, const char* text) { to_[key] = text; }
  void derived(const char* key, const std::optional<double>& value) { or_null(key, value); }
  template <typename T>
  bool section(const char*, const std::optional<T>& value) const {
    return value.has_value();
  }
  void placement(const char* key, const Placement& placement, const Provenance& made) {
    to_[key] = ordered_json::parse(placement_to_json(placement, made));
  }

 private:
  template <typename T>
  static ordered_json written(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return to_string(value);
    } else {
      ordered_json object = ordered_json::object();
      Writer writer(object);
      fields(writer, value);
      return object;
    }
  }
  template <typename T>
  static ordered_json written(const std::vector<T>& values) {
    ordered_json array = ordered_json::array();
    for (const T& value : values) array.push_back(written(value));
    return array;
  }

  ordered_json& to_;
};

// ---- reading ----

class Reader {
 public:
  Reader(std::string where, const json& from) : where_(std::move(where)), from_(from) {
    if (!from.is_object()) fail("", from, "an object");
  }

  template <typename T>
  void operator()(const char* key, T& value) {
    read(key, required(key), value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (const json* found = find(key)) read(key, *found, value.emplace());
  }
  template <typename T>
  void or_null(const char* key, std::optional<T>& value) {
    if (const json& found = required(key); !found.is_null()) read(key, found, value.emplace());
  }
  void or_absent(const char* key, std::string& text) {
    if (const json* found = find(key)) read(key, *found, text);
  }
  void unless(const std::string&, const char* key, double& value) {
    if (const json& found = required(key); !found.is_null()) read(key, found, value);
  }
  void unit(const char* key, bool& unitless) {
    std::string text;
    read(key, required(key), text);
    if (text != "s" && text != "graph") fail(key, required(key), "s or graph");
    unitless = text == "graph";
  }
  template <typename T>
  void derived(const char* key, const T&) {
    find(key);
  }
  template <typename T>
  bool section(const char* key, std::optional<T>& value) {
    if (!from_.contains(key)) return false;
    value.emplace();
    return true;
  }
  void placement(const char* key, Placement& placement, Provenance& made) {
    PlacementFile file = parse_placement(where_ + ": '" + key + "'", required(key).dump());
    placement = std::move(file.placement);
    made = std::move(file.made);
  }

  // What nobody asked for is of another version, or no result.
  void finish() const {
    for (const auto& [key, value] : from_.items())
      if (!seen_.contains(key))
        throw InputError(fmt::format("{}: found '{}'; required a result of this version of doppler", where_, key));
  }
  const json* find(const char* key) {
    seen_.insert(key);
    const auto found = from_.find(key);
    return found == from_.end() ? nullptr : &*found;
  }

 private:
  const json& required(const char* key) {
    const json* found = find(key);
    if (found == nullptr) throw InputError(fmt::format("{}: no '{}'; required a whole result", where_, key));
    return *found;
  }
  [[noreturn]] void fail(const char* key, const json& found, const char* required) const {
    throw InputError(fmt::format("{}: '{}': found {}; required {}", where_, key, formats::shown(found), required));
  }
  template <typename T>
  void read(const char* key, const json& from, T& value) {
    if constexpr (std::same_as<T, bool>) {
      if (!from.is_boolean()) fail(key, from, "true or false");
      value = from.get<bool>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!from.is_number()) fail(key, from, "a number");
      value = from.get<T>();
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (!from.is_number_unsigned()) fail(key, from, "a whole number");
      value = from.get<T>();
    } else if constexpr (std::same_as<T, std::string>) {
      if (!from.is_string()) fail(key, from, "a text");
      value = from.get<std::string>();
    } else if constexpr (std::same_as<T, LowerBound::Kind>) {
      value = parse_enum(text_of(key, from), where_ + ": '" + key + "'", kBoundKinds);
    } else if constexpr (std::is_enum_v<T>) {
      value = parse_enum(
          text_of(key, from), where_ + ": '" + key + "'",
          std::array{GraphFacts::Measure::seconds, GraphFacts::Measure::unitless, GraphFacts::Measure::flops});
    } else {
      Reader reader(where_ + ": '" + key + "'", from);
      fields(reader, value);
      reader.finish();
    }
  }
  template <typename T>
  void read(const char* key, const json& from, std::vector<T>& values) {
    if (!from.is_array()) fail(key, from, "an array");
    for (const json& element : from) read(key, element, values.emplace_back());
  }
  std::string text_of(const char* key, const json& from) {
    std::string text;
    read(key, from, text);
    return text;
  }

  std::string where_;
  const json& from_;
  std::set<std::string> seen_ = {"result", "version"};
};

// ---- cleaning ----

class Cleaner {
 public:
  template <typename T>
  void operator()(const char*, T& value) {
    clean(value);
  }
  template <typename T>
  void or_null(const char*, std::optional<T>& value) {
    clean(value);
  }
  void or_absent(const char*, std::string& text) { clean(text); }
  void unless(const std::string&, const char*, double) {}
  void unit(const char*, bool) {}
  template <typename T>
  void derived(const char*, const T&) {}
  template <typename T>
  bool section(const char*, const std::optional<T>& value) const {
    return value.has_value();
  }
  void placement(const char*, const Placement&, const Provenance&) {}

 private:
  template <typename T>
  void clean(T& value) {
    if constexpr (std::same_as<T, std::string>)
      value = for_terminal(value, kLongestName);
    else if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T>)
      fields(*this, value);
  }
  template <typename T>
  void clean(std::optional<T>& value) {
    if (value) clean(*value);
  }
  template <typename T>
  void clean(std::vector<T>& values) {
    for (T& value : values) clean(value);
  }
};

template <std::size_t... I>
AnyResult read_kind(std::size_t kind, const std::string& where, const json& file, std::index_sequence<I...>) {
  AnyResult result;
  const auto attempt = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
    if (kind != K) return;
    Reader reader(where, file);
    fields(reader, result.emplace<K>());
    reader.finish();
  };
  (attempt(std::integral_constant<std::size_t, I>()), ...);
  return result;
}

}  // namespace

void clean_names(AnyResult& result) {
  std::visit(
      [](auto& value) {
        Cleaner cleaner;
        fields(cleaner, value);
      },
      result);
}

std::string to_json(const AnyResult& result) {
  ordered_json file = {{"result", kKinds[result.index()]}, {"version", kVersion}};
  std::visit(
      [&](const auto& value) {
        Writer writer(file);
        fields(writer, value);
      },
      result);
  // Names come from files and paths, which need not be UTF-8.
  return file.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

AnyResult parse_result(const std::string& where, std::string_view text) {
  const json file = formats::parse_json(where, text, {});
  const json kind = file.is_object() ? file.value("result", json()) : json();
  const auto found = std::find(kKinds.begin(), kKinds.end(), kind.is_string() ? kind.get<std::string>() : "");
  if (found == kKinds.end())
    throw InputError(fmt::format("{}: no \"result\"; required what a verb wrote with --json", where));
  if (file.value("version", json()) != kVersion)
    throw InputError(fmt::format("{}: version {}; required {}", where, file.value("version", json()).dump(), kVersion));
  return read_kind(static_cast<std::size_t>(found - kKinds.begin()), where, file,
                   std::make_index_sequence<std::variant_size_v<AnyResult>>());
}

}  // namespace doppler
