#include "doppler/app/placements.h"

#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/machine/machine.h"

namespace doppler {
namespace {

// A user's placement may contradict the machine or the graph; a method's may not, which is verify()'s
// business.
void check_allowed(const std::string& where, const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const DeviceId device = placement.device_of_op[op];
    if (!problem.allows(op, device))
      throw InputError(fmt::format(
          "{}: op '{}' is on device '{}', which cannot run it or its colocation group; required device '{}'", where,
          graph.name(op), problem.machine().device(device).name,
          problem.machine().device(problem.devices(op).front()).name));
    const OpId first = problem.unit(op).front();
    if (device != placement.device_of_op[first])
      throw InputError(fmt::format(
          "{}: ops '{}' and '{}' are on different devices; required the same, they share a colocation group", where,
          graph.name(first), graph.name(op)));
  }
}

void note_other_rules(const std::string& where, const Provenance& made, const Rules& rules, const char* doing) {
  const auto note = [&](const char* key, const std::string& then, std::string_view now) {
    if (!then.empty() && then != now)
      complain(fmt::format("note: {} was made for --{} {}; {} {}", where, key, then, doing, now));
  };
  note("discipline", made.discipline, to_string(rules.discipline));
  note("links", made.links, to_string(rules.links));
}

}  // namespace

PlacementFile read_placement(const std::string& path) { return parse_placement(path, read_file(path)); }

std::string machine_of(const std::string& path, const PlacementFile& file) {
  const std::string& name = file.made.machine;
  if (name.starts_with("uniform:")) return name;
  for (const MachinePreset& preset : machine_presets())
    if (preset.name == name) return name;
  throw InputError(fmt::format("{}: made for machine '{}', which is no preset; required --machine", path, name));
}

Placement placement_for(const std::string& path, PlacementFile file, const Problem& problem, bool quiet,
                        const char* doing) {
  check_size(path, file.placement, problem.op_count(), problem.device_count());
  check_allowed(path, problem, file.placement);
  if (!quiet) note_other_rules(path, file.made, problem.rules(), doing);
  return std::move(file.placement);
}

}  // namespace doppler
