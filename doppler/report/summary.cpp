#include "doppler/report/summary.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doppler/graph/graph.h"
#include "doppler/report/table.h"

namespace doppler {
namespace {

constexpr std::size_t kStripWidth = 40;

// Busy time of each device in each of kStripWidth equal parts of the run.
std::vector<double> busy_by_part(const Timeline& timeline, DeviceId devices) {
  std::vector<double> busy(devices * kStripWidth, 0.0);
  const Seconds part = timeline.makespan / kStripWidth;
  if (!(part > 0)) return busy;
  for (const Timeline::Execution& run : timeline.executions) {
    for (auto i = static_cast<std::size_t>(run.start / part); i < kStripWidth; ++i) {
      const Seconds from = static_cast<double>(i) * part;
      if (from >= run.end) break;
      busy[run.device * kStripWidth + i] +=
          std::max(0.0, std::min(run.end, from + part) - std::max(run.start, from));
    }
  }
  return busy;
}

char shade(double fraction) {
  constexpr double kRounding = 1e-9;  // sums of many short ops
  if (fraction <= kRounding) return ' ';
  if (fraction >= 1 - kRounding) return '#';
  return fraction < 1.0 / 3 ? '.' : fraction < 2.0 / 3 ? '-' : '=';
}

}  // namespace

std::vector<DeviceUse> device_uses(const Timeline& timeline, const Machine& machine) {
  std::vector<DeviceUse> uses(machine.device_count());
  for (const Timeline::Execution& run : timeline.executions) ++uses[run.device].ops;
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    if (timeline.makespan > 0)
      uses[id].utilisation = timeline.busy[id] / (machine.device(id).slots * timeline.makespan);
  return uses;
}

Traffic traffic(const Timeline& timeline, const Graph& graph) {
  Traffic result;
  result.transfers = timeline.transfers.size();
  for (const Timeline::Transfer& transfer : timeline.transfers) result.bytes += graph.bytes(transfer.tensor);
  return result;
}

std::string format_time(Seconds value, bool unitless) {
  constexpr double kExact = 0x1p53;
  if (!unitless) return format_seconds(value);
  return value == std::floor(value) && value < kExact ? fmt::format("{:.0f}", value)
                                                      : fmt::format("{:.6g}", value);
}

std::string device_table(const Timeline& timeline, const Machine& machine) {
  Table table({{"device", Table::Align::left},
               {"ops"},
               {"busy"},
               {"peak memory"},
               {"of"},
               {fmt::format("{:<{}}", "activity", kStripWidth + 2), Table::Align::left}});
  const std::vector<DeviceUse> uses = device_uses(timeline, machine);
  const std::vector<double> busy = busy_by_part(timeline, machine.device_count());
  for (DeviceId id = 0; id < machine.device_count(); ++id) {
    const Device& device = machine.device(id);
    const double whole = device.slots * timeline.makespan / kStripWidth;
    std::string strip;
    for (std::size_t i = 0; i < kStripWidth; ++i)
      strip += shade(whole > 0 ? busy[id * kStripWidth + i] / whole : 0);
    table.add_row({device.name, std::to_string(uses[id].ops),
                   fmt::format("{:.1f} %", 100 * uses[id].utilisation),
                   format_bytes(timeline.peak_memory[id]),
                   device.memory > 0 ? format_bytes(device.memory) : "-", fmt::format("|{}|", strip)});
  }
  return table.text();
}

}  // namespace doppler
