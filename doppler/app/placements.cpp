#include "doppler/app/placements.h"

#include <fmt/format.h>

#include "doppler/api/judge.h"
#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/machine.h"

namespace doppler {
namespace {

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
  check_allowed(path, problem, file.placement);
  if (!quiet) note_other_rules(path, file.made, problem.rules(), doing);
  return std::move(file.placement);
}

}  // namespace doppler
