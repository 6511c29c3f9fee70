#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "doppler/executor.h"
#include "doppler/results.h"
#include "doppler/serve/deployment.h"

namespace doppler {

// A device that becomes slower (or faster) while a graph is served.
struct Drift {
  DeviceId device = 0;
  double factor = 1;    // how many times as long as modelled it takes
  std::size_t run = 0;  // the first run that is affected, from 0
};

struct ServiceOptions {
  std::size_t runs = 200;
  std::vector<Drift> drifts = {};
  // Makes a device take so many times as long as modelled, as EmulatedExecutor::slow_down() does. Drifts need it.
  std::function<void(DeviceId device, double factor)> slow_down = {};
  std::stop_token stop = {};  // ends the service early

  std::function<void(std::size_t run, Seconds time, bool challenger)> on_run = {};  // called after each run
  std::function<void()> on_decisions = {};  // called whenever the deployment may have decided something
};

// Serves the graph again and again on the executor, each time with the placement that the deployment names, and tells
// the deployment what each run took. Typical times are medians of the incumbent's runs in a span of 20, or of 10 right
// after a drift; none if there are none. Ends early, with fewer runs, when it is to stop.
ServiceResult run_service(Executor& executor, Deployment& deployment, const ServiceOptions& options);

}  // namespace doppler
