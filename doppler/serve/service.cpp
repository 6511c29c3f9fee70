#include "doppler/serve/service.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/statistics.h"

namespace doppler {
namespace {

constexpr std::size_t kRightAfter = 10, kSpan = 20;

// Returns the median of the incumbent's runs from `first` to before `last`.
std::optional<Seconds> typical_time(const ServiceResult& service, std::size_t first, std::size_t last) {
  std::vector<Seconds> chosen;
  for (std::size_t run = first; run < std::min(last, service.times.size()); ++run)
    if (!std::binary_search(service.challengers.begin(), service.challengers.end(), run))
      chosen.push_back(service.times[run]);
  if (chosen.empty()) return std::nullopt;
  return median(std::move(chosen));
}

// Fills in what follows from the runs and from what the deployment decided.
void summarise(ServiceResult& service, const Deployment& deployment, const std::vector<Drift>& drifts,
               const Machine& machine) {
  const std::size_t runs = service.times.size();
  service.runs = deployment.runs();
  service.explored = deployment.explored();
  service.changes = deployment.changes();
  service.at_first = typical_time(service, 0, kSpan);
  service.at_the_end = typical_time(service, runs - std::min(kSpan, runs), runs);
  for (const Drift& drift : drifts)
    if (drift.run < runs)
      service.drifts.push_back({drift.device, machine.device(drift.device).name, drift.factor, drift.run,
                                typical_time(service, drift.run - std::min(kSpan, drift.run), drift.run),
                                typical_time(service, drift.run, drift.run + kRightAfter)});
  for (const DeploymentEvent& event : deployment.events())
    service.events.push_back({event.run, std::string(to_string(event.kind)), event.text});
}

}  // namespace

ServiceResult run_service(Executor& executor, Deployment& deployment, const ServiceOptions& options) {
  DOPPLER_CHECK(options.drifts.empty() || options.slow_down, "drifts without a way to slow devices down");
  const auto decided = [&] {
    if (options.on_decisions) options.on_decisions();
  };
  const Problem& problem = executor.problem();
  ServiceResult service;
  service.graph = service.title = problem.graph().title();
  service.machine = problem.machine().name();
  service.unitless = problem.graph().unitless();
  try {
    for (std::size_t run = 0; run < options.runs && !options.stop.stop_requested(); ++run) {
      for (const Drift& drift : options.drifts)
        if (drift.run == run) options.slow_down(drift.device, drift.factor);
      const Placement& placement = deployment.next();
      decided();
      const Timeline timeline = executor.run(placement);
      service.times.push_back(timeline.makespan);
      if (deployment.exploring()) service.challengers.push_back(run);
      if (options.on_run) options.on_run(run, timeline.makespan, deployment.exploring());
      deployment.observe(timeline.makespan, timeline);
      decided();
    }
  } catch (const RunCancelled&) {
    // The runs that have ended are the service.
  }
  summarise(service, deployment, options.drifts, problem.machine());
  return service;
}

}  // namespace doppler
