#include "doppler/app/placements.h"

#include <fmt/format.h>

#include "doppler/api/judge.h"
#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/machine.h"
#include "doppler/problem/device_maps.h"

namespace doppler {
namespace {

void note_other_rules(const std::string& where, const Provenance& made, const Problem& problem, const char* doing) {
  const Rules& rules = problem.rules();
  const std::string& machine = problem.machine().name();
  const auto note = [&](const char* key, const std::string& then, std::string_view now) {
    if (!then.empty() && then != now)
      complain(fmt::format("note: {} was made for --{} {}; {} {}", where, key, then, doing, now));
  };
  note("machine", made.machine, machine);
  note("discipline", made.discipline, to_string(rules.discipline));
  note("links", made.links, to_string(rules.links));
}

}  // namespace

PlacementFile read_placement(const std::string& path) { return parse_placement(path, read_file(path)); }

std::string machine_of(const std::string& path, const PlacementFile& file) {
  const std::string& name = file.made.machine;
  if (is_machine_name(name)) return name;
  throw InputError(fmt::format("{}: made for machine '{}', which is no preset; required --machine", path, name));
}

Placement placement_for(const std::string& path, PlacementFile file, const Problem& problem, bool quiet,
                        const char* doing) {
  check_size(path, file.placement, problem.op_count(), problem.device_count());
  const std::string& made_for = file.made.fingerprint;
  if (!made_for.empty() && made_for != fmt::format("{:016x}", problem.graph().fingerprint()))
    throw InputError(fmt::format("{}: found a placement of '{}', a graph of other ops or edges; required one of '{}'",
                                 path, file.made.graph, problem.graph().title()));
  check_allowed(path, problem, file.placement);
  if (!quiet) note_other_rules(path, file.made, problem, doing);
  return std::move(file.placement);
}

Placement read_placement_for(const std::string& path, const LoadedProblem& loaded, bool quiet, const char* doing) {
  const Machine& machine = loaded.problem.machine();
  return placement_for(path, parse_any_placement(path, read_file(path), loaded.file, machine), loaded.problem, quiet,
                       doing);
}

}  // namespace doppler
