#include "doppler/serve/service.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/statistics.h"

namespace doppler {
namespace {

using Change = Drift::Change;

constexpr std::size_t kRightAfter = 10, kSpan = 20;

// Returns the median of the incumbent's runs from `first` to before `last`, counted as the service counts them.
std::optional<Seconds> typical_time(const ServiceResult& service, std::size_t first, std::size_t last) {
  std::vector<Seconds> chosen;
  first = std::max(first, service.resumed_at);
  for (std::size_t run = first; run < std::min(last, service.resumed_at + service.times.size()); ++run)
    if (!std::binary_search(service.challengers.begin(), service.challengers.end(), run))
      chosen.push_back(service.times[run - service.resumed_at]);
  if (chosen.empty()) return std::nullopt;
  return median(std::move(chosen));
}

std::string name_of(const Drift& drift, const Machine& machine) {
  const std::string& name = machine.device(drift.device).name;
  return drift.peer ? fmt::format("{}-{}", name, machine.device(*drift.peer).name) : name;
}

// Fills in what follows from the runs and from what the deployment decided.
void summarise(ServiceResult& service, const Deployment& deployment, const std::vector<Drift>& drifts,
               const Machine& machine) {
  const std::size_t end = service.resumed_at + service.times.size();
  service.runs = deployment.runs();
  service.explored = deployment.explored();
  service.changes = deployment.changes();
  service.lost = deployment.lost();
  service.at_first = typical_time(service, service.resumed_at, service.resumed_at + kSpan);
  service.at_the_end = typical_time(service, end - std::min(kSpan, end), end);
  for (const Drift& drift : drifts)
    if (drift.run >= service.resumed_at && drift.run < end)
      service.drifts.push_back({drift.device, name_of(drift, machine), std::string(to_string(drift.change)),
                                drift.factor, drift.run,
                                typical_time(service, drift.run - std::min(kSpan, drift.run), drift.run),
                                typical_time(service, drift.run, drift.run + kRightAfter)});
  for (const DeploymentEvent& event : deployment.events())
    service.events.push_back({event.run, std::string(to_string(event.kind)), event.text});
}

void apply(const Drift& drift, ChangeableDevices& devices) {
  if (drift.change != Change::slower) return devices.set_present(drift.device, drift.change == Change::back);
  if (!drift.peer) return devices.slow_down(drift.device, drift.factor);
  devices.slow_down(drift.device, *drift.peer, drift.factor);
  devices.slow_down(*drift.peer, drift.device, drift.factor);
}

// All devices that do not answer: one run tells only of the first that it needed.
std::vector<DeviceId> silent_devices(Executor& executor, DeviceId known) {
  std::vector<DeviceId> silent = {known};
  for (DeviceId device = 0; device < executor.problem().device_count(); ++device)
    if (device != known && !executor.answers(device)) silent.push_back(device);
  return silent;
}

std::optional<DeviceId> find_device(const Machine& machine, std::string_view name) {
  for (DeviceId device = 0; device < machine.device_count(); ++device)
    if (machine.device(device).name == name || std::to_string(device) == name) return device;
  return std::nullopt;
}

// Finds the device, or the two that a '-' joins; names may hold one themselves.
void find_place(Drift& drift, const std::string& name, const Machine& machine) {
  if (const auto device = find_device(machine, name)) {
    drift.device = *device;
    return;
  }
  for (std::size_t dash = name.find('-'); dash != std::string::npos; dash = name.find('-', dash + 1)) {
    const auto one = find_device(machine, name.substr(0, dash)), other = find_device(machine, name.substr(dash + 1));
    if (!one || !other || *one == *other) continue;
    drift.device = *one;
    drift.peer = other;
    return;
  }
  throw InputError(fmt::format("--drift: found '{}'; required a device of machine '{}', or two with '-' between them",
                               name, machine.name()));
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::slower:
      return "slower";
    case Change::gone:
      return "gone";
    case Change::back:
      return "back";
  }
  return "";
}

Drift parse_drift(const std::string& text, const Machine& machine) {
  const auto wrong = [&] {
    return InputError(
        fmt::format("--drift: found '{}'; required device=factor@run, device-device=factor@run, device=gone@run or "
                    "device=back@run, such as 0=2@100",
                    text));
  };
  const std::size_t at = text.rfind('@');
  const std::size_t equals = text.rfind('=', at);
  if (at == std::string::npos || equals == std::string::npos || equals == 0) throw wrong();
  char* end = nullptr;
  const std::string change = text.substr(equals + 1, at - equals - 1), run = text.substr(at + 1);
  Drift drift;
  if (change == "gone" || change == "back") {
    drift.change = change == "gone" ? Change::gone : Change::back;
  } else {
    drift.factor = std::strtod(change.c_str(), &end);
    if (change.empty() || *end != '\0' || !(drift.factor > 0) || drift.factor > 1e6) throw wrong();
  }
  drift.run = std::strtoull(run.c_str(), &end, 10);
  if (run.empty() || *end != '\0' || run.find_first_not_of("0123456789") != std::string::npos) throw wrong();
  find_place(drift, text.substr(0, equals), machine);
  if (drift.peer && drift.change != Change::slower)
    throw InputError(fmt::format("--drift: found '{}'; required one device, links are slow but there", text));
  return drift;
}

ServiceResult run_service(Executor& executor, Deployment& deployment, const ServiceOptions& options) {
  DOPPLER_CHECK(options.drifts.empty() || executor.changeable() != nullptr, "drifts of devices that are what they are");
  const auto decided = [&] {
    if (options.on_decisions) options.on_decisions();
  };
  const Problem& problem = executor.problem();
  ServiceResult service;
  service.graph = service.title = problem.graph().title();
  service.machine = problem.machine().name();
  service.unitless = problem.graph().unitless();
  service.resumed_at = deployment.runs();
  std::vector<Drift> drifts = options.drifts;
  std::stable_sort(drifts.begin(), drifts.end(), [](const Drift& a, const Drift& b) { return a.run < b.run; });
  auto due = drifts.begin();
  try {
    while (deployment.runs() < options.runs && !options.stop.stop_requested()) {
      const std::size_t run = deployment.runs();
      for (; due != drifts.end() && due->run <= run; ++due) apply(*due, *executor.changeable());
      for (const DeviceId device : deployment.worth_asking()) deployment.asked(device, executor.answers(device));
      decided();
      const Placement& placement = deployment.next();
      try {
        const Timeline timeline = executor.run(placement);
        service.times.push_back(timeline.makespan);
        if (deployment.exploring()) service.challengers.push_back(run);
        if (options.on_run) options.on_run(run, timeline.makespan, deployment.exploring());
        deployment.observe(timeline.makespan, timeline);
      } catch (const DeviceGone& gone) {
        deployment.lose(silent_devices(executor, gone.device));
      }
      decided();
    }
  } catch (const RunCancelled&) {
    // The runs that have ended are the service.
  } catch (const InfeasibleError& error) {
    service.ended = error.what();
  }
  summarise(service, deployment, options.drifts, problem.machine());
  return service;
}

}  // namespace doppler
