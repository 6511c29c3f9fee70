#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

class DeviceKind;

// The options that executors of every kind of device share; ThreadsOptions and EmulatedOptions say what they mean.
struct RuntimeOptions {
  bool deterministic = false;
  Seconds stall_after = 30;
  std::stop_token stop = {};
};

// The core of the executors: runs placements of one problem asynchronously and work-conserving, by the rules of the
// problem, with a worker thread per device, couriers that move tensors between the devices beside them, and no lock or
// queue that all share. docs/engine.md has the whole story. Internal to doppler/engine.
//
// Threads, buffers and the kind of devices are held in common by the runtime and its threads: a kernel that never
// returns keeps what it uses alive, and everything else can go.
class Runtime {
 public:
  Runtime(const Problem& problem, std::shared_ptr<DeviceKind> kind, const RuntimeOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Says why devices of no kind can run the problem; nothing if they can.
  static std::optional<std::string> obstacle(const Problem& problem);

  const Problem& problem() const;
  // Runs every op once and returns the makespan, with the errors of Executor::run().
  Seconds execute(const Placement& placement);
  // Returns what happened in the last run, which must have succeeded.
  Timeline timeline() const;

 private:
  class Crew;
  std::shared_ptr<Crew> crew_;
};

}  // namespace doppler
