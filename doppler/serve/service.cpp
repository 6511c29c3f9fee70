#include "doppler/serve/service.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/statistics.h"

namespace doppler {
namespace {

constexpr std::size_t kRightAfter = 10, kSpan = 20;

}  // namespace

std::optional<Seconds> Service::typical(std::size_t first, std::size_t last) const {
  std::vector<Seconds> chosen;
  for (std::size_t i = first; i < std::min(last, times.size()); ++i)
    if (!challenger[i]) chosen.push_back(times[i]);
  if (chosen.empty()) return std::nullopt;
  return median(std::move(chosen));
}

std::optional<Seconds> Service::at_first() const { return typical(0, kSpan); }

std::optional<Seconds> Service::at_the_end() const {
  return typical(times.size() - std::min(kSpan, times.size()), times.size());
}

std::optional<Seconds> Service::before(const Drift& drift) const {
  return typical(drift.run - std::min(kSpan, drift.run), drift.run);
}

std::optional<Seconds> Service::right_after(const Drift& drift) const {
  return typical(drift.run, drift.run + kRightAfter);
}

Service run_service(Executor& executor, Deployment& deployment, const ServiceOptions& options) {
  DOPPLER_CHECK(options.drifts.empty() || options.slow_down, "drifts without a way to slow devices down");
  const auto interrupted = [&] { return options.interrupted != nullptr && options.interrupted->load(); };
  const auto decided = [&] {
    if (options.on_decisions) options.on_decisions();
  };
  Service service;
  service.drifts = options.drifts;
  try {
    for (std::size_t run = 0; run < options.runs && !interrupted(); ++run) {
      for (const Drift& drift : options.drifts)
        if (drift.run == run) options.slow_down(drift.device, drift.factor);
      const Placement& placement = deployment.next();
      decided();
      const Timeline timeline = executor.run(placement);
      service.times.push_back(timeline.makespan);
      service.challenger.push_back(deployment.exploring());
      if (options.on_run) options.on_run(run, timeline.makespan, deployment.exploring());
      deployment.observe(timeline.makespan, timeline);
      decided();
    }
  } catch (const RunCancelled&) {
    // The runs that have ended are the service.
  }
  return service;
}

}  // namespace doppler
