#include "doppler/app/rig.h"

#include <numeric>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/varied_placements.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/module.h"
#include "doppler/base/pin_thread.h"
#include "doppler/calibrate/calibration.h"
#include "doppler/kernels/aten/aten_backend.h"
#include "doppler/kernels/generate_inputs.h"
#include "doppler/kernels/npy.h"
#include "doppler/sim/objective.h"

namespace doppler {
namespace {

// What a run of a graph without a unit should take: long enough to be timed, short enough to be repeated.
constexpr Seconds kUnitlessRun = 0.5;

// "name=value" at the last '='.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* flag, const char* required) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw InputError(fmt::format("{}: found '{}'; required {}", flag, text, required));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void read_inputs(const program::Program& program, const std::vector<std::string>& files, Arrays& inputs) {
  for (const std::string& text : files) {
    const auto [name, path] = split_pair(text, "--input", "name=file.npy");
    program::ExprId found = program.size();
    for (program::ExprId id = 0; id < program.size(); ++id)
      if (program.node(id).name == name && program.node(id).as<program::Input>() != nullptr) found = id;
    if (found == program.size())
      throw InputError(fmt::format("--input: found '{}'; required the name of an input of the program", name));
    const program::Node& node = program.node(found);
    Array array = parse_npy(path, read_file(path));
    if (array.shape != node.shape || array.dtype != node.dtype)
      throw InputError(fmt::format("{}: found {} {}; required {} {} for input '{}'", path, to_string(array.dtype),
                                   program::to_string(array.shape), to_string(node.dtype),
                                   program::to_string(node.shape), name));
    inputs[found] = std::move(array);
  }
}

// What computes on devices of this name.
std::unique_ptr<Backend> make_backend(const std::string& devices, DeviceId count) {
  if (devices == "cpu") return make_host_backend();
  const Module module{"doppler_cuda", "--devices cuda",
                      "a build configured with -DDOPPLER_CUDA=ON and a libtorch with CUDA"};
  const auto make = reinterpret_cast<MakeCudaBackend>(open_module(module, library_directory(), kMakeCudaBackend));
  return std::unique_ptr<Backend>(make(count));
}

}  // namespace

Machine bare_machine(const std::string& type, DeviceId count) {
  std::vector<Device> devices(count);
  for (DeviceId id = 0; id < count; ++id) {
    devices[id].name = fmt::format("{}{}", type, id);
    devices[id].type = type;
    devices[id].rates = {{"*", "*", 1e10}};
    devices[id].memory_bytes_per_second = 1e10;
  }
  const Links model = type == "cpu" && count >= usable_cores() ? Links::receiver : Links::channels;
  return Machine("this box", devices, std::vector<Link>(count * count, Link{1e-5, 1e10, 1, 1}), model);
}

void add_rig_flags(CLI::App& verb, RigOptions& options) {
  verb.add_option("--engine", options.engine, "What executes: threads of this process")
      ->check(CLI::IsMember({"threads"}))
      ->capture_default_str();
  verb.add_option("--devices", options.devices,
                  "cpu: real kernels, a pinned core per device; cuda: real kernels, device i is GPU i; emulated: every "
                  "op takes its modelled time")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}))
      ->capture_default_str();
  verb.add_option("--time-scale", options.time_scale,
                  "Emulated: real seconds per modelled second or unit; 0: 1, or half a second per run without a unit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  verb.add_option("--slowdown", options.slowdown, "Emulated: device=factor, this device takes longer than modelled");
  verb.add_option("--input", options.inputs, "name=file.npy, the value of an input; the others are generated");
  verb.add_flag("--deterministic", options.deterministic,
                "Add up partial results in a fixed order: same bits every run");
  verb.add_option("--stall-after", options.stall_after, "Give up if no op ends for this long")->capture_default_str();
}

Rig::Rig(const LoadedProblem& loaded, const RigOptions& options, std::uint64_t seed) {
  EngineOptions engine;
  engine.deterministic = options.deterministic;
  engine.stall_after = parse_duration(options.stall_after, "--stall-after");
  engine.interrupted = interrupt_flag();
  if (options.devices != "emulated") {
    if (!options.slowdown.empty() || options.time_scale != 0)
      throw InputError("--slowdown, --time-scale: required --devices emulated");
    if (loaded.problem.machine().device_count() > usable_cores())
      complain(fmt::format("warning: {} devices share {} cores; times say little",
                           loaded.problem.machine().device_count(), usable_cores()));
    load_kernels(loaded, options, seed);
    engine_ = std::make_shared<Engine>(loaded.problem, *kernels_, engine);
    return;
  }
  if (!options.inputs.empty())
    throw InputError("--input: required --devices cpu or cuda, emulated devices compute nothing");
  engine.devices = EngineOptions::Devices::emulated;
  time_scale_ = options.time_scale > 0 ? options.time_scale : 1;
  if (options.time_scale == 0 && loaded.problem.graph().unitless()) {
    const Placement one{std::vector<DeviceId>(loaded.problem.graph().op_count(), 0), {}, {}};
    const Seconds makespan = ExactObjective(loaded.problem).value(one);
    if (makespan > 0) time_scale_ = kUnitlessRun / makespan;
  }
  engine.time_scale = time_scale_;
  emulated_ = std::make_unique<EmulatedKernels>(loaded.problem, time_scale_);
  for (const std::string& text : options.slowdown) {
    const auto [name, factor] = split_pair(text, "--slowdown", "device=factor");
    char* end = nullptr;
    const double value = std::strtod(factor.c_str(), &end);
    if (*end != '\0' || !(value > 0) || value > 1e6)
      throw InputError(fmt::format("--slowdown: found '{}'; required a factor above 0", factor));
    emulated_->slow_down(loaded.problem.machine().device_by_name(name), value);
  }
  engine_ = std::make_shared<Engine>(loaded.problem, *emulated_, engine);
}

// A kernel that never returned is still reading them.
Rig::~Rig() {
  if (engine_ == nullptr || !engine_->lost()) return;
  static_cast<void>(kernels_.release());
  static_cast<void>(emulated_.release());
}

void Rig::load_kernels(const LoadedProblem& loaded, const RigOptions& options, std::uint64_t seed) {
  const program::RunnableProgram* runnable = loaded.problem.program();
  if (runnable == nullptr)
    throw InputError(
        fmt::format("{}: found no program, only costs; required a graph from 'doppler generate' or 'doppler lower' "
                    "whose kernels can run, or --devices emulated",
                    loaded.file.path));
  std::unique_ptr<Backend> backend = make_backend(options.devices, loaded.problem.machine().device_count());
  Arrays inputs = generate_inputs(*runnable->program, seed);
  read_inputs(*runnable->program, options.inputs, inputs);
  kernels_ = std::make_unique<ProgramKernels>(*runnable->program, runnable->lowered, std::move(inputs),
                                              generate_variables(*runnable->program), std::move(backend));
}

std::vector<Turn> calibration_turns(const Problem& problem, unsigned count, std::uint64_t seed) {
  Calibration::check(problem.graph());  // before anything runs
  Rng rng(mix(seed, 1));
  std::vector<Turn> turns;
  for (unsigned i = 0; i < count; ++i) turns.push_back({random_placement(problem, rng), {}});
  return turns;
}

void run_round(Engine& engine, std::vector<Turn>& turns, Rng& rng,
               const std::function<void(Turn&, Seconds)>& measured) {
  std::vector<std::size_t> order(turns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[rng.below(static_cast<std::uint32_t>(left))]);
  for (const std::size_t next : order) {
    Turn& turn = turns[next];
    if (!turn.fits) continue;
    try {
      measured(turn, engine.execute(turn.placement));
    } catch (const InfeasibleError&) {
      turn.fits = false;
    }
  }
}

std::vector<Seconds> measure(Engine& engine, const Placement& placement, unsigned warmup, unsigned repeat) {
  for (unsigned i = 0; i < warmup; ++i) engine.execute(placement);
  std::vector<Seconds> times;
  for (unsigned i = 0; i < repeat; ++i) times.push_back(engine.execute(placement));
  return times;
}

}  // namespace doppler
