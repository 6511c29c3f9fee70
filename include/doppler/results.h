#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "doppler/bounds.h"
#include "doppler/placement.h"
#include "doppler/problem.h"
#include "doppler/schedule.h"
#include "doppler/time_account.h"
#include "doppler/timeline.h"

// What verbs find, as data: one struct each, with to_json(), parse_result() and to_text(). Times are seconds, or the
// graph's own unit where `unitless`.
//
//   const doppler::PlaceResult found = doppler::place(problem);          // place.h
//   std::cout << doppler::to_text(found);                                // what `doppler place` prints
//   const doppler::AnyResult same = doppler::parse_result("there", doppler::to_json(found));
//
// Limits. JSON of a newer version is refused, not guessed at.
namespace doppler {

// ---- simulate, place, compare ----

// One placement of one graph and what it is worth.
struct Outcome {
  Provenance made;  // who, with what, on what; makespan and lower bound
  LowerBound::Kind bound_kind = LowerBound::Kind::work;
  double gap = 0;           // makespan / lower bound - 1
  bool feasible = true;     // false: see `reason` if nothing was found, else the overflow of the run
  bool optimal = false;     // proven
  std::string reason = {};  // why there is no placement; makespan and gap then mean nothing
  Seconds seconds = 0;      // wall-clock time of the method
  bool unitless = false;
  // What the method went by: exact, expected, p95, or an objective of yours; empty: nothing was searched.
  std::string objective = {};
  // If times vary: the mean makespan with its standard error, the 95 % quantile, and what no mean can beat (none for
  // large graphs). They are over the same draws.
  std::optional<Seconds> expected = {}, expected_error = {}, p95 = {}, expected_bound = {};
  double jitter = 0;  // how much they vary

  bool operator==(const Outcome&) const = default;
};

// Whether `a` is the one to take: by the objective or, if none is named, by what is to be expected where both say it.
bool better(const Outcome& a, const Outcome& b);

// What one device did in a run.
struct DeviceUse {
  std::string name;
  std::size_t ops = 0;
  Seconds busy = 0;                   // over all its slots
  double utilisation = 0;             // busy time over slots × makespan
  Bytes peak_memory = 0, memory = 0;  // memory 0: unlimited
  std::vector<double> activity = {};  // the share of its slots that was busy, in equal parts of the run

  bool operator==(const DeviceUse&) const = default;
};
struct Traffic {
  std::size_t transfers = 0;
  Bytes bytes = 0;

  bool operator==(const Traffic&) const = default;
};
struct OverflowFact {
  std::string op, device;
  Bytes needed = 0, capacity = 0;

  bool operator==(const OverflowFact&) const = default;
};

struct SimulationResult {
  Outcome outcome;
  std::optional<OverflowFact> overflow;  // none: it fits
  std::vector<DeviceUse> devices;
  Traffic transfers;
  std::optional<Schedule> schedule = {};  // where somebody asked for it

  bool operator==(const SimulationResult&) const = default;
};

struct PlaceResult {
  SimulationResult run;
  std::size_t ops = 0, edges = 0;
  // The best single device, for a model that was cut by place_file() before it was cut; none can run and hold the graph.
  std::optional<Seconds> single_device;
  std::size_t devices_used = 0;
  double parallelism = 1;   // work over the longest chain, by the fastest time of each op
  std::uint32_t shard = 0;  // a model that was cut: in at most how many blocks per op
  // Cutting the ops of a model that stays on one device is predicted to help.
  struct ShardHint {
    std::uint32_t parts = 0;
    Seconds makespan = 0;

    bool operator==(const ShardHint&) const = default;
  };
  std::optional<ShardHint> hint = {};
  Placement placement;

  bool operator==(const PlaceResult&) const = default;
};

struct ComparisonRow {
  Outcome outcome;
  std::size_t ops = 0;                   // of its graph
  bool added = false;                    // not asked for: the strongest cheap baseline
  std::vector<double> utilisation = {};  // by device, as DeviceUse has it; none where nothing was found

  bool operator==(const ComparisonRow&) const = default;
};
struct Comparison {
  std::vector<ComparisonRow> rows;  // graph by graph, in the order of the methods

  bool operator==(const Comparison&) const = default;
};

// ---- why, diff ----

// Why a placement takes as long as it does.
struct WhyResult {
  // One step of the chain that explains the makespan, from the beginning of the run to its end.
  struct Step {
    std::string name;       // the op, or that whose result travelled
    std::string device;     // or both ends: "gpu0 to gpu1"
    std::string waits_for;  // why it did not begin earlier: nothing, data, transfer, device, channel or barrier
    bool transfer = false;
    Seconds start = 0, end = 0;

    bool operator==(const Step&) const = default;
  };
  // What another device would cost: the makespan, or why not.
  struct Elsewhere {
    std::string device;
    std::optional<Seconds> makespan;
    std::string reason = {};

    bool operator==(const Elsewhere&) const = default;
  };
  // An op or module that was asked for.
  struct Unit {
    std::string name, device;
    std::string cause = {};  // as the placement's method said it; empty: it did not
    std::size_t ops = 0;
    Seconds time = 0;  // of its ops, one after the other
    std::vector<Elsewhere> elsewhere = {};

    bool operator==(const Unit&) const = default;
  };
  struct LongTransfer {
    std::string op, from, to;  // whose result it is
    Bytes bytes = 0;
    Seconds seconds = 0, queued = 0;  // on the way, and before that in front of a busy link

    bool operator==(const LongTransfer&) const = default;
  };
  struct Idle {
    std::string device;
    DeviceTime time;
    std::string blamed = {};  // whose result it waited for most, and for how long
    Seconds blamed_seconds = 0;

    bool operator==(const Idle&) const = default;
  };
  struct Help {
    std::string change;
    Seconds makespan = 0;  // simulated

    bool operator==(const Help&) const = default;
  };
  std::string graph, machine;
  bool unitless = false, feasible = true;
  Seconds makespan = 0;
  Seconds chain_compute = 0, chain_transfer = 0, chain_idle = 0;  // they add up to the makespan
  std::vector<Step> chain;
  std::vector<Unit> units;
  std::vector<LongTransfer> transfers;  // the longest
  std::vector<Idle> idle;               // none if a device has several slots
  std::string limit, because;           // parallelism, devices, one device, links or dependencies; and its number
  std::vector<Help> help;               // what helps most first

  bool operator==(const WhyResult&) const = default;
};

// What differs between two placements.
struct DiffResult {
  struct Side {
    std::string placement = {};  // its file
    Seconds makespan = 0;
    bool feasible = true;
    std::size_t devices = 0;
    Bytes moved = 0;
    Seconds chain_compute = 0, chain_transfer = 0, chain_idle = 0;

    bool operator==(const Side&) const = default;
  };
  // An op, or ops of one module, that both have on different devices.
  struct Moved {
    std::string name, from, to;
    std::size_t ops = 0;
    std::optional<Seconds> alone = {};  // the makespan of the first placement with this alone moved

    bool operator==(const Moved&) const = default;
  };
  std::string graph, machine;
  bool unitless = false;
  Side a, b;
  std::size_t ops_moved = 0;
  std::vector<Moved> moved;  // what is worth most by itself first

  bool operator==(const DiffResult&) const = default;
};

// ---- info ----

// How fast the matrix products of cpu devices are on one core of this box.
struct ProductShare {
  std::string dtype;
  double peak = 0;      // FLOP/s that the core does at most, measured beside the products
  double products = 0;  // FLOP/s

  double share() const { return peak > 0 ? products / peak : 0; }
  bool operator==(const ProductShare&) const = default;
};

struct KindShare {
  std::string kind;
  std::size_t ops = 0;
  double work = 0;
  Flops flops = 0;
  double bytes = 0;                         // read and written
  double flops_share = 0, bytes_share = 0;  // of the graph's

  bool operator==(const KindShare&) const = default;
};
struct ModelFacts {  // an ONNX file
  double macs = 0, flops = 0;
  std::uint64_t parameters = 0;
  Bytes parameter_bytes = 0;
  std::size_t nodes = 0, folded_nodes = 0;

  bool operator==(const ModelFacts&) const = default;
};
struct GraphFacts {
  // What work is counted in: seconds on the given machine, explicit times, or flops where neither is known.
  enum class Measure : std::uint8_t { seconds, unitless, flops };

  std::string graph, format, machine;  // no machine: empty
  std::size_t ops = 0, tensors = 0, edges = 0;
  Measure measure = Measure::flops;
  std::size_t depth = 0, width = 0;
  double work = 0, critical_path = 0;
  std::optional<double> communication;  // time to move every edge; unknown without a machine or explicit times
  Bytes parameter_bytes = 0, tensor_bytes = 0, peak_activation_bytes = 0;
  Flops flops = 0;
  double bytes = 0;
  std::vector<KindShare> kinds;  // by work, then ops, then name
  std::optional<LowerBound> bound;
  std::optional<ModelFacts> model;
  std::vector<ProductShare> products;  // of this box, where they were asked for
  std::vector<std::string> warnings;

  bool operator==(const GraphFacts&) const = default;
};

std::string_view to_string(GraphFacts::Measure measure);  // "s", "graph", "flops"

// ---- machines ----

// The machines and kinds of devices that are known by name.
struct MachineList {
  struct Entry {
    std::string name, summary, source;
    Bytes memory = 0;  // of all its devices

    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> kinds, presets;

  bool operator==(const MachineList&) const = default;
};

// ---- explain ----

// How a program is cut, and what that costs beside other ways to cut it.
struct PlanResult {
  struct Cut {
    std::string expression, kernel, cut;  // cut: "label:blocks", by dimension
    std::size_t blocks = 0;

    bool operator==(const Cut&) const = default;
  };
  struct Rival {
    std::string plan;
    double moved = 0, messages = 0;  // bytes between devices, and in how many pieces
    Seconds compute = 0, estimate = 0, relational = 0;
    double resident = 0;  // bytes of inputs over all devices, copies included

    bool operator==(const Rival&) const = default;
  };
  std::string program, plan;
  std::size_t expressions = 0, parts = 0, sites = 0;
  std::vector<Cut> cuts;
  std::vector<Rival> plans;
  std::vector<std::string> relations;  // the logical and the physical plan in tensor relational algebra, line by line

  bool operator==(const PlanResult&) const = default;
};

// What rewriting makes of an ONNX model before it is placed.
struct RewriteResult {
  struct Pass {
    std::string name;
    std::size_t found = 0;

    bool operator==(const Pass&) const = default;
  };
  std::string model;
  std::size_t nodes = 0, folded_nodes = 0;  // of the file; folded ones depend on no data or move none
  std::size_t ops = 0;                      // that are placed
  std::vector<Pass> passes;                 // empty if it was to stay as it is

  bool operator==(const RewriteResult&) const = default;
};

// ---- run, validate, calibrate ----

struct RunResult {
  struct Device {
    std::string name;
    std::size_t ops = 0;
    DeviceTime time;  // of the last run
    Bytes peak_memory = 0;

    bool operator==(const Device&) const = default;
  };
  std::string graph, machine, devices;  // devices: "cpu", "cuda" or "emulated"
  bool unitless = false;
  Seconds measured = 0;  // the median
  std::vector<Seconds> times;
  Seconds predicted = 0;
  bool timed_one_device = true;       // whether somebody wanted to know
  std::optional<Seconds> one_device;  // median; none if one cannot hold the graph, or if interrupted
  bool interrupted = false;
  std::size_t asked_for = 0;  // runs; fewer were made if it was interrupted or took too long
  double others = 0;          // the share of the devices' time in which their cores were other threads' or processes'
  std::string noise = {};     // why the times mean little; empty: they do not
  Seconds last = 0;           // the makespan that the devices' times are of
  std::vector<Device> device_times;
  std::optional<Schedule> schedule = {}, simulated = {};  // of the last run, and predicted; where somebody asked for it

  bool operator==(const RunResult&) const = default;
};

// A service that improves its placement while it runs.
struct ServiceResult {
  struct Drift {
    DeviceId device = 0;
    std::string name;               // of the device, or of the two ends of a link with '-' between them
    std::string change = "slower";  // or "gone", "back"
    double factor = 1;
    std::size_t run = 0;                         // the first that is affected, from 0
    std::optional<Seconds> before, right_after;  // medians of the incumbent

    bool operator==(const Drift&) const = default;
  };
  struct Event {
    std::uint64_t run = 0;
    std::string kind, text;

    bool operator==(const Event&) const = default;
  };
  std::string graph, title, machine;
  bool unitless = false;
  std::uint64_t runs = 0, explored = 0, changes = 0;
  std::uint64_t lost = 0;                // runs that did not end because a device was gone; they were repeated
  std::size_t resumed_at = 0;            // the first run of this process; the state of an earlier one has those before
  std::vector<Seconds> times;            // of this process
  std::vector<std::size_t> challengers;  // the runs that were not the incumbent's
  std::optional<Seconds> at_first, at_the_end;
  std::vector<Drift> drifts;
  std::vector<Event> events;
  std::optional<std::string> ended;  // why it could not go on

  bool operator==(const ServiceResult&) const = default;
};

// How well the simulator predicts the runs of one graph.
struct Validity {
  // One placement, predicted and measured.
  struct Sample {
    std::string origin;  // who made it, or how
    Seconds simulated = 0, measured = 0;
    std::vector<Seconds> times;  // the runs that `measured` is made of

    bool operator==(const Sample&) const = default;
  };
  std::string graph;
  std::vector<Sample> samples;
  double pearson = 0, spearman = 0;
  double pearson_of_medians = 0, spearman_of_medians = 0;  // with plain medians of the runs as measured times
  double mean_error = 0;                                   // the mean of |simulated / measured - 1|
  double bias = 0;                                         // the mean of simulated / measured - 1
  // What Spearman would be between these measured times and others like them. None if a placement ran only once.
  std::optional<double> repeatability = std::nullopt;

  bool operator==(const Validity&) const = default;
};
struct ValidityResult {
  std::vector<Validity> graphs;

  bool operator==(const ValidityResult&) const = default;
};

struct CalibrationResult {
  struct Kind {
    std::string kind, dtype;
    std::size_t shapes = 0, samples = 0;
    double flops_per_second = 0, bytes_per_second = 0;  // medians
    double spread = 0;                   // the 10 % to 90 % range of an op's time over its median, on average
    double jitter = 0;                   // the sigma of its times within a run
    std::optional<double> interference;  // how much longer beside others, as a factor

    bool operator==(const Kind&) const = default;
  };
  // How well the jitter that was found describes the times that it was found from: of every op, over what is usual for
  // it and for the run.
  struct Fit {
    struct Quantile {
      double share = 0, measured = 0, modelled = 0;

      bool operator==(const Quantile&) const = default;
    };
    std::size_t samples = 0;
    double distance = 0;  // the largest difference between the two distribution functions (Kolmogorov and Smirnov)
    std::vector<Quantile> quantiles;
    // How much the time that a device spends on its ops deviates from run to run, as a share of it: measured, and if
    // the factors of its ops are independent of one another.
    double work_measured = 0, work_modelled = 0;

    bool operator==(const Fit&) const = default;
  };
  std::string machine, links;
  bool emulated = false;
  std::size_t devices = 0, transfers = 0;
  std::vector<Kind> kinds;                 // none if emulated
  std::vector<ProductShare> products;      // of cpu devices
  Seconds op_excess = 0, link_excess = 0;  // emulated: what is added to the model
  Seconds latency = 0;
  double bytes_per_second = 0;                   // of the links; 0: transfers of one size only
  double jitter = 0, transfer_jitter = 0;        // the sigmas of the machine's Jitter
  double tail_probability = 0, tail_factor = 1;  // its tail
  Fit fit;
  double stretch = 1;
  double others = 0;       // as of RunResult
  std::string noise = {};  // why the machine predicts little; empty: it does not

  bool operator==(const CalibrationResult&) const = default;
};

// ---- split ----

// A model in parts, each a model of its own: what flows between them and in which order they run. It is also the
// manifest beside the parts.
struct SplitResult {
  struct Value {
    std::string name, dtype;
    std::vector<std::uint64_t> shape = {};
    Bytes bytes = 0;
    std::string from = {};  // the file of the part that makes it, or "model": it is fed in, or a parameter

    bool operator==(const Value&) const = default;
  };
  struct Part {
    std::string file, device;
    std::size_t level = 0;  // parts of one level do not wait for one another
    std::size_t nodes = 0;
    Bytes parameter_bytes = 0;
    std::vector<Value> inputs, outputs;

    bool operator==(const Part&) const = default;
  };
  std::string graph, machine;
  std::vector<Value> inputs, outputs;  // of the whole
  std::vector<Part> parts;             // in an order in which they can run
  std::string unchecked = {};          // why ONNX's checker did not look at them; empty: it did, and found nothing

  bool operator==(const SplitResult&) const = default;
};

// ---- train ----

struct TrainingResult {
  struct Task {
    std::string graph;
    std::optional<Seconds> best;              // none: nothing that fits in memory was found
    std::optional<Seconds> lower_bound = {};  // none where there is no bound on the objective
    bool unitless = false;
    std::string objective = {};  // what the best is the best by
    double jitter = 0;           // how much the machine's times vary

    bool operator==(const Task&) const = default;
  };
  struct System {  // stage III
    std::uint64_t runs = 0, reused = 0, refused = 0;
    bool finished = false, changed = false;
    Seconds before = 0, after = 0;
    double p = 1;
    std::size_t finalists = 0;
    bool unitless = false;

    bool operator==(const System&) const = default;
  };
  std::string directory;
  std::uint64_t episodes = 0, seed = 0;
  Seconds seconds = 0;
  std::optional<double> held_out;  // the score on held-out graphs, of the best cheap heuristic
  std::optional<System> system;
  std::vector<Task> tasks;

  bool operator==(const TrainingResult&) const = default;
};

using AnyResult = std::variant<SimulationResult, PlaceResult, Comparison, GraphFacts, PlanResult, RewriteResult,
                               RunResult, ServiceResult, ValidityResult, CalibrationResult, TrainingResult, WhyResult,
                               DiffResult, MachineList, SplitResult>;

// The JSON that others script against (docs/json.md), ending with a newline. It says what kind of result it is.
std::string to_json(const AnyResult& result);
// Reads what to_json() wrote. Throws InputError naming `where` if the text is no result of this version.
AnyResult parse_result(const std::string& where, std::string_view text);
// What a verb prints for people. Names appear as text, whatever they hold: no control characters, no second line.
std::string to_text(const AnyResult& result);

// What a timeline says of every device, and of the links.
std::vector<DeviceUse> device_uses(const Timeline& timeline, const Machine& machine);
Traffic traffic(const Timeline& timeline, const Graph& graph);
// A run of `problem` as a result, with what is known of the placement already.
SimulationResult simulation_result(Outcome outcome, const Problem& problem, const Timeline& timeline);

}  // namespace doppler
