#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "doppler/executor.h"
#include "doppler/results.h"
#include "doppler/serve/deployment.h"

namespace doppler {

// Something that happens to emulated devices while a graph is served.
struct Drift {
  enum class Change : std::uint8_t {
    slower,  // a device, or a link in both directions, takes `factor` times as long as modelled
    gone,    // a device no longer answers
    back,    // it answers again
  };
  Change change = Change::slower;
  DeviceId device = 0;
  std::optional<DeviceId> peer = std::nullopt;  // it is the link between the two
  double factor = 1;
  std::size_t run = 0;  // the first run that is affected, from 0
};
std::string_view to_string(Drift::Change change);
// Reads "0=2@100", "gpu0-gpu1=4@100", "gpu2=gone@100" or "gpu2=back@160". Throws InputError.
Drift parse_drift(const std::string& text, const Machine& machine);

struct ServiceOptions {
  std::size_t runs = 200;          // all in all, with those that the deployment has behind it
  std::vector<Drift> drifts = {};  // only of emulated devices
  std::stop_token stop = {};       // ends the service early

  std::function<void(std::size_t run, Seconds time, bool challenger)> on_run = {};  // called after each run
  // Called whenever the deployment may have decided something, never while a run is under way.
  std::function<void()> on_decisions = {};
};

// Serves the graph again and again on the executor, each time with the placement that the deployment names, and tells
// the deployment what each run took. A run that is lost because a device does not answer is repeated with what the
// deployment then names; `ended` says so if there is nothing that can run. Typical times are medians of the incumbent's
// runs in a span of 20, or of 10 right after a drift; none if there are none. Ends early, with fewer runs, when it is
// to stop.
ServiceResult run_service(Executor& executor, Deployment& deployment, const ServiceOptions& options);

}  // namespace doppler
