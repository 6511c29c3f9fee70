#pragma once

// Finding a placement: which device runs which op.
//
//   doppler::LoadedProblem model = doppler::load_problem("model.onnx", doppler::load_machine("v100x4"));
//   doppler::PlaceResult found = doppler::place(model.problem, {.method = "auto", .time = 5});
//   found.run.outcome.made.makespan;   // seconds, by the simulator
//   found.run.outcome.gap;             // how far above a bound that no placement can beat: 0.08 is 8 %
//   found.placement.device_of_op;      // a device for every op
//
// Limits. The makespan is simulated with the machine's exact times. Where they vary, methods go by what is to be
// expected, outcome.expected, which is seldom what exact times say. A method that searches uses the whole time it is
// given, unless it reaches the bound. The same seed and number of `evaluations` give the same placement at any number
// of threads; a time does not.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "doppler/load.h"
#include "doppler/method.h"
#include "doppler/problem.h"
#include "doppler/results.h"

namespace doppler {

struct PlaceOptions {
  std::string method = "auto";                    // methods() lists them
  Seconds time = 10;                              // for methods that search
  bool cpu_time = false;                          // the time is that of the process on its processors
  std::optional<std::uint64_t> evaluations = {};  // how many simulations instead of how long
  std::uint64_t seed = 0;
  unsigned threads = 1;        // never changes the result, only when it is there
  std::string policy = {};     // for learned methods and `auto`: a policy file or the directory of a training
  Seconds train = 0;           // learned methods: how long to specialise on the problem before answering
  std::uint32_t samples = 64;  // learned methods: placements to draw beside the greedy one
  bool alone = false;          // learned methods: the policy's own answer, even if a heuristic does better
  // How much worse than what the method found a simpler placement may be, as a share: one of fewer devices, then of
  // fewer bytes moved, on the first of equal devices. None: what the method found is the answer.
  std::optional<double> tolerance = {};
  bool published = false;                          // critical_path: with the defects of the published code, for parity
  std::shared_ptr<Objective> objective = nullptr;  // what placements are judged by; null: see objective_name
  std::string objective_name = {};                 // "exact", "expected" or "p95"; empty: usual_objective()
  std::string graph = {};                          // the name that results have for the graph; empty: its title
  std::function<void(const Progress&)> on_progress = {};  // called now and then, from the calling thread
  // What place_file() begins with, for what it has read; the answer is never worse. None: nothing.
  std::function<std::optional<Placement>(const LoadedProblem&)> start = {};
  // The same for place().
  std::optional<Placement> start_placement = {};
  // Called by place_file() with what it has read, before that is placed; what it throws ends the call.
  std::function<void(const LoadedProblem&)> on_loaded = {};
  std::stop_token stop = {};  // request_stop() of its source, from anywhere: the best so far is returned soon
};

// Throws InputError if the options are wrong whatever the problem: an unknown method, a policy that cannot be read.
void check(const PlaceOptions& options);

// Runs the method and says what its placement is worth. Throws InputError for a wrong option and InfeasibleError if
// nothing that fits in memory was found.
PlaceResult place(const Problem& problem, const PlaceOptions& options = {});
// The same by a method of your own, such as
//   const Method mine{"mine", "one line for people", Method::Family::search, true, my_function};
PlaceResult place(const Problem& problem, const Method& method, const PlaceOptions& options = {});

// The whole pipeline from a file. Where load.shard is LoadOptions::kAutoShard, an ONNX model is placed as it is and cut
// in 2, 4, … blocks, up to as many as there are devices (twice that if they are unequal, so that a faster one can have
// a larger share), and the best is kept: it is never worse than uncut. single_device of the result is that of the uncut
// model in any case. A model that stays on one device has a hint in its result, if cutting it would help.
struct PlacedFile {
  LoadedProblem loaded;
  PlaceResult result;
};
PlacedFile place_file(const std::string& path, const Machine& machine, const LoadOptions& load = {},
                      const PlaceOptions& options = {});

// Runs several methods, one after the other, each as place() does with these options; options.method is ignored.
// Without names it is every method that needs no training first. The strongest of the cheap methods is always among the
// rows, and with options.train each learned method has a row as it stands, if it can answer so, and one after training.
// A method that finds nothing has its reason in its row. Interrupted, the rows so far are returned.
Comparison compare(const Problem& problem, const std::vector<std::string>& methods, const PlaceOptions& options = {});
// Throws InputError if the options are wrong whatever the problem.
void check(const std::vector<std::string>& methods, const PlaceOptions& options);

// {"layers.0": 0, …}: the modules of an ONNX model and their devices, as `device_map` of Hugging Face takes them: the
// outermost modules that are on one device as a whole. Accelerators are numbered as in CUDA, a processor is "cpu".
// Throws InputError if the file is no ONNX model, was cut, or a module is on several devices, which
// LoadOptions::granularity prevents.
std::string device_map(const GraphFile& file, const Placement& placement, const Machine& machine);

}  // namespace doppler
