#include <optional>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/report.h"
#include "doppler/report/plots.h"
#include "doppler/report/timelines.h"

namespace doppler {
namespace {

constexpr std::size_t kColumns = 100;  // of a timeline on a terminal

// Returns the schedules of a result, the measured one first; none: it has none.
std::vector<NamedSchedule> schedules_of(const NamedResult& named) {
  std::vector<NamedSchedule> found;
  const auto add = [&](const std::string& name, const std::optional<Schedule>& schedule) {
    if (schedule) found.push_back({name, &*schedule});
  };
  if (const auto* simulation = std::get_if<SimulationResult>(&named.result)) add(named.name, simulation->schedule);
  if (const auto* placed = std::get_if<PlaceResult>(&named.result)) add(named.name, placed->run.schedule);
  if (const auto* run = std::get_if<RunResult>(&named.result)) {
    add(named.name + ", measured", run->schedule);
    add(named.name + ", simulated", run->simulated);
  }
  return found;
}

std::vector<NamedSchedule> required_schedules(const NamedResult& named) {
  std::vector<NamedSchedule> found = schedules_of(named);
  if (found.empty())
    throw InputError(fmt::format(
        "{}: no timeline; required the result of place, simulate or run, written with --timeline", named.name));
  return found;
}

}  // namespace

std::string picture_svg(const std::vector<NamedResult>& results) {
  if (results.size() == 1) {
    if (const auto* validity = std::get_if<ValidityResult>(&results[0].result))
      return plot_to_svg(scatter_plot(*validity));
    if (const auto* service = std::get_if<ServiceResult>(&results[0].result))
      return plot_to_svg(service_plot(*service));
  }
  std::vector<NamedSchedule> timelines;
  for (const NamedResult& named : results)
    for (NamedSchedule& timeline : required_schedules(named)) timelines.push_back(std::move(timeline));
  return timelines_to_svg(timelines);
}

bool has_picture(const NamedResult& result) {
  return std::holds_alternative<ValidityResult>(result.result) ||
         std::holds_alternative<ServiceResult>(result.result) || !schedules_of(result).empty();
}

std::string timeline_csv(const NamedResult& result) { return timeline_to_csv(*required_schedules(result)[0].schedule); }

std::string timeline_text(const NamedResult& result) {
  std::string text;
  for (const NamedSchedule& timeline : required_schedules(result)) {
    if (!text.empty()) text += fmt::format("\n{}\n", timeline.name);
    text += timeline_to_text(*timeline.schedule, kColumns);
  }
  return text;
}

}  // namespace doppler
