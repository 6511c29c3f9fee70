#pragma once

// Running a placement for real.
//
//   doppler::LoadedProblem chain = doppler::load_problem("chain.json", machine, {.runnable = true});
//   auto executor = doppler::make_executor(chain.problem);             // real kernels, a pinned core per device
//   doppler::RunResult result = doppler::run(*executor, placement, {.repeat = 20});
//   result.measured; result.predicted; result.one_device;
//
// Limits. Devices that compute need an ONNX model, or a graph that carries its program ('doppler generate', 'doppler
// lower', .ein files); any graph can be emulated. A device has one slot. Times of more devices than cores say little.

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "doppler/executor.h"
#include "doppler/problem.h"
#include "doppler/results.h"

namespace doppler {

struct ExecutorOptions {
  // "cpu": real kernels, a pinned core per device. "cuda": real kernels, device i is GPU i. "emulated": every op takes
  // its modelled time.
  std::string devices = "cpu";
  std::string engine = "threads";  // what runs cpu devices: our own runtime, or "starpu"
  double time_scale =
      0;  // emulated: real seconds per modelled second or unit; 0: 1, or half a second a run without unit
  std::map<DeviceId, double> slowdown = {};  // emulated: how many times as long a device takes
  std::map<std::string, std::string> inputs =
      {};                      // names of inputs and their .npy files, of a model also .pb; the others are generated
  bool deterministic = false;  // add up partial results in a fixed order: the same bits in every run
  Seconds stall_after = 30;    // give up if no op ends for this long
  std::uint64_t seed = 0;      // of the inputs that are generated
  std::string graph = {};      // the name that errors have for the graph; empty: its title
  std::stop_token stop = {};   // request_stop() of its source, from anywhere: the run ends with RunCancelled
};

// Makes an executor. Throws InputError if it cannot run the problem, or if options contradict one another.
std::shared_ptr<Executor> make_executor(const Problem& problem, const ExecutorOptions& options = {});

struct MeasureOptions {
  unsigned repeat = 20, warmup = 3;  // runs that count, and runs before them
  bool one_device = true;            // time everything on one device too
  Seconds time = 0;                  // all in all, after which it ends with what it has; 0: any
  std::function<void(unsigned run, Seconds time)> on_run = {};  // called after each, from 0 on
};

// Runs the placement again and again and, unless told otherwise, everything on one device for comparison. What was
// interrupted counts as far as it went; RunCancelled if no run had ended. `last` receives the timeline of the last run,
// if given.
RunResult run(Executor& executor, const Placement& placement, const MeasureOptions& options = {},
              Timeline* last = nullptr);

}  // namespace doppler
