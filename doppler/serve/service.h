#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "doppler/executor.h"
#include "doppler/serve/deployment.h"

namespace doppler {

// A device that becomes slower (or faster) while a graph is served.
struct Drift {
  DeviceId device = 0;
  double factor = 1;    // how many times as long as modelled it takes
  std::size_t run = 0;  // the first run that is affected, from 0
};

// Everything that happened while a graph was served.
struct Service {
  std::vector<Seconds> times;
  std::vector<bool> challenger;  // by run: it tried a challenger, not the incumbent
  std::vector<Drift> drifts;

  // Each returns the median of the incumbent's runs in a span of 20 runs (right after a drift, of 10); nothing if there
  // are none.
  std::optional<Seconds> at_first() const;
  std::optional<Seconds> at_the_end() const;
  std::optional<Seconds> before(const Drift& drift) const;
  std::optional<Seconds> right_after(const Drift& drift) const;

 private:
  std::optional<Seconds> typical(std::size_t first, std::size_t last) const;
};

struct ServiceOptions {
  std::size_t runs = 200;
  std::vector<Drift> drifts = {};
  // Makes a device take so many times as long as modelled, as EmulatedExecutor::slow_down() does. Drifts need it.
  std::function<void(DeviceId device, double factor)> slow_down = {};
  const std::atomic<bool>* interrupted = nullptr;  // ends the service early

  std::function<void(std::size_t run, Seconds time, bool challenger)> on_run = {};  // called after each run
  std::function<void()> on_decisions = {};  // called whenever the deployment may have decided something
};

// Serves the graph again and again on the executor, each time with the placement that the deployment names, and tells
// the deployment what each run took. Ends early, with fewer runs, when interrupted.
Service run_service(Executor& executor, Deployment& deployment, const ServiceOptions& options);

}  // namespace doppler
