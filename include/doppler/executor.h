#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "doppler/errors.h"
#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// What an executor can do for a problem that it accepted.
struct ExecutorLimits {
  // Whether ops do their work; otherwise they only take their modelled time.
  bool computes = false;
  // More devices than this share cores, so that their times say little.
  DeviceId undisturbed_devices = std::numeric_limits<DeviceId>::max();
};

// A device that the placement needs does not answer; a placement without it may still run.
struct DeviceGone : InfeasibleError {
  DeviceGone(DeviceId which, std::string text) : InfeasibleError(std::move(text)), device(which) {}
  DeviceId device;
};

// What can be done to devices that only emulate others: they change while they are used. From any thread; a run that
// has begun may or may not notice.
class ChangeableDevices {
 public:
  virtual ~ChangeableDevices() = default;
  // Lets ops on the device, or transfers over the link, take `factor` times as long as modelled from now on.
  virtual void slow_down(DeviceId device, double factor) = 0;
  virtual void slow_down(DeviceId src, DeviceId dst, double factor) = 0;
  // Lets the device no longer answer, or answer again.
  virtual void set_present(DeviceId device, bool present) = 0;
};

// Runs placements of one problem for real, one at a time, and owns everything that this takes. doppler/engine has the
// executors that there are: threads with real kernels, and emulated devices. An executor refuses a problem that it
// cannot run when it is made: its constructor throws InputError, and its static obstacle(problem) says why.
//
//   std::shared_ptr<Executor> executor = make_executor(problem);   // run.h
//   Timeline timeline = executor->run(placement);
class Executor {
 public:
  virtual ~Executor() = default;

  virtual std::string_view name() const = 0;
  virtual const Problem& problem() const = 0;
  virtual ExecutorLimits limits() const { return {}; }

  // Runs every op once and returns what happened when. Throws InfeasibleError if memory does not suffice, DeviceGone if
  // a device does not answer, RunCancelled if the run was interrupted, and InternalError if an op failed or nothing
  // moves any more.
  virtual Timeline run(const Placement& placement) = 0;
  // Runs every op once and returns only the makespan, which costs less than a timeline. Throws as run() does.
  virtual Seconds time(const Placement& placement) { return run(placement).makespan; }

  // Runs every op once and hands over what the program computed, by name, as the content of .npy files. Throws
  // InputError if ops do not compute, and as run() does.
  using TakeResult = std::function<void(const std::string& name, std::string npy)>;
  virtual void results(const Placement&, const TakeResult&) {
    throw InputError("results: found devices that compute nothing; required --devices cpu or cuda");
  }
  // Asks whether the device is there, which takes no run. Executors that cannot tell say yes.
  virtual bool answers(DeviceId) { return true; }
  // Null: these devices are what they are.
  virtual ChangeableDevices* changeable() { return nullptr; }
};

}  // namespace doppler
