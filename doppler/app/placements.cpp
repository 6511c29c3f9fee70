#include "doppler/app/placements.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

void note_other_rules(const std::string& where, const std::string& text, const Rules& rules, const char* doing) {
  const auto file = nlohmann::json::parse(text);
  for (const auto& [key, now] :
       {std::pair("discipline", to_string(rules.discipline)), {"links", to_string(rules.links)}})
    if (const auto made = file.value(key, nlohmann::json()); made.is_string() && made != now)
      complain(fmt::format("note: {} was made for --{} {}; {} {}", where, key, made.get<std::string>(), doing, now));
}

}  // namespace

std::string machine_of_placement(const std::string& path) {
  const auto file = nlohmann::json::parse(read_file(path), nullptr, false);
  if (!file.is_object()) throw InputError(fmt::format("{}: found no JSON object; required a placement", path));
  const auto made_for = file.value("machine", nlohmann::json());
  const std::string name = made_for.is_string() ? made_for.get<std::string>() : "";
  if (name.starts_with("uniform:")) return name;
  for (const MachinePreset& preset : machine_presets())
    if (preset.name == name) return name;
  throw InputError(fmt::format("{}: made for machine '{}', which is no preset; required --machine", path, name));
}

Placement read_placement(const std::string& path, const Problem& problem, bool quiet, const char* doing) {
  const std::string text = read_file(path);
  Placement placement = parse_placement(path, text, problem.op_count(), problem.device_count());
  check_allowed(path, problem, placement);
  if (!quiet) note_other_rules(path, text, problem.rules(), doing);
  return placement;
}

}  // namespace doppler
