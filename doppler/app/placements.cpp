#include "doppler/app/placements.h"

#include <algorithm>
#include <filesystem>

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

// Whether the placement is one of the problem: of its size, and every op where it may be, with those of its group.
bool is_allowed(const Problem& problem, const Placement& placement) {
  if (placement.device_of_op.size() != problem.op_count()) return false;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const DeviceId device = placement.device_of_op[op];
    if (device >= problem.device_count() || !problem.allows(op, device)) return false;
    if (device != placement.device_of_op[problem.unit(op).front()]) return false;
  }
  return true;
}

}  // namespace

PlacementFile read_placement(const std::string& path) { return parse_placement(path, read_file(path)); }

std::string machine_of(const std::string& path, const PlacementFile& file) {
  const std::string& name = file.made.machine;
  if (is_machine_name(name)) return name;
  throw InputError(fmt::format("{}: made for machine '{}', which is no preset; required --machine", path, name));
}

Placement placement_for(const std::string& path, PlacementFile file, const LoadedProblem& loaded, bool quiet,
                        const char* doing) {
  const Problem& problem = loaded.problem;
  const std::string& made_for = file.made.fingerprint;
  if (!made_for.empty() && made_for != fmt::format("{:016x}", problem.graph().fingerprint())) {
    if (file.made.shard > 0)
      throw InputError(
          fmt::format("{}: found a placement of '{}' cut by --shard {}; required one of '{}' as it is here", path,
                      file.made.graph, file.made.shard, loaded.file.path));
    throw InputError(fmt::format("{}: found a placement of '{}', a graph of other ops or edges; required one of '{}'",
                                 path, file.made.graph, loaded.file.path));
  }
  check_size(path, file.placement, problem.op_count(), problem.device_count());
  check_allowed(path, problem, file.placement);
  if (!quiet) note_other_rules(path, file.made, problem, doing);
  return std::move(file.placement);
}

std::optional<Placement> trained_placement(const std::string& directory, const LoadedProblem& loaded) {
  if (directory.empty()) return std::nullopt;
  std::vector<std::string> paths;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(directory + "/placements", failed), end; !failed && entry != end;
       entry.increment(failed))
    if (entry->path().extension() == ".json") paths.push_back(entry->path().string());
  std::sort(paths.begin(), paths.end());
  std::optional<PlacementFile> best;
  for (const std::string& path : paths) {
    PlacementFile file = read_placement(path);
    const Provenance here = provenance_of(loaded.problem, loaded.file.path);
    const bool same = file.made.fingerprint == fmt::format("{:016x}", loaded.problem.graph().fingerprint()) &&
                      file.made.machine == here.machine && file.made.discipline == here.discipline &&
                      file.made.links == here.links;
    if (same && is_allowed(loaded.problem, file.placement) && (!best || file.made.makespan < best->made.makespan))
      best = std::move(file);
  }
  if (!best) return std::nullopt;
  return std::move(best->placement);
}

Placement read_placement_for(const std::string& path, const LoadedProblem& loaded, bool quiet, const char* doing) {
  const Machine& machine = loaded.problem.machine();
  return placement_for(path, parse_any_placement(path, read_file(path), loaded.file, machine), loaded, quiet, doing);
}

}  // namespace doppler
