#include "doppler/placement.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/parse_enum.h"
#include "doppler/graph/formats/json_reader.h"

namespace doppler {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "doppler-placement";
constexpr int kVersion = 1;
constexpr std::array kCauses = {Cause::chosen,         Cause::pinned,          Cause::colocated,     Cause::only_device,
                                Cause::earliest_start, Cause::earliest_finish, Cause::critical_path, Cause::partition,
                                Cause::fill_order,     Cause::memory,          Cause::search,        Cause::policy,
                                Cause::makespan,       Cause::less_moved,      Cause::indifferent};

const json& required_array(const std::string& where, const json& file, const char* key) {
  const auto found = file.find(key);
  if (found == file.end() || !found->is_array())
    throw InputError(fmt::format("{}: no array '{}'; required one entry per op", where, key));
  return *found;
}

// Who made a placement is told by other programs, too: what is missing or of another type is unknown.
template <typename Value>
void read_if_there(const json& file, const char* key, Value& value) {
  if (const auto found = file.find(key); found != file.end() && found->type() == json(value).type())
    value = found->get<Value>();
}

Provenance provenance_of(const json& file) {
  Provenance made;
  read_if_there(file, "method", made.method);
  read_if_there(file, "winner", made.winner);
  read_if_there(file, "doppler", made.version);
  read_if_there(file, "budget", made.budget);
  read_if_there(file, "seed", made.seed);
  read_if_there(file, "evaluations", made.evaluations);
  read_if_there(file, "graph", made.graph);
  read_if_there(file, "fingerprint", made.fingerprint);
  read_if_there(file, "machine", made.machine);
  read_if_there(file, "discipline", made.discipline);
  read_if_there(file, "links", made.links);
  read_if_there(file, "shard", made.shard);
  for (const auto& [key, value] : {std::pair("makespan", &made.makespan), {"lower_bound", &made.lower_bound}})
    if (const auto found = file.find(key); found != file.end() && found->is_number()) *value = found->get<Seconds>();
  return made;
}

}  // namespace

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::chosen:
      return "chosen";
    case Cause::pinned:
      return "pinned";
    case Cause::colocated:
      return "colocated";
    case Cause::only_device:
      return "only_device";
    case Cause::earliest_start:
      return "earliest_start";
    case Cause::earliest_finish:
      return "earliest_finish";
    case Cause::critical_path:
      return "critical_path";
    case Cause::partition:
      return "partition";
    case Cause::fill_order:
      return "fill_order";
    case Cause::memory:
      return "memory";
    case Cause::search:
      return "search";
    case Cause::policy:
      return "policy";
    case Cause::makespan:
      return "makespan";
    case Cause::less_moved:
      return "less_moved";
    case Cause::indifferent:
      return "indifferent";
  }
  throw InternalError("unknown cause");
}

std::vector<std::uint32_t> ranks_of(const std::vector<double>& values) {
  std::vector<OpId> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](OpId a, OpId b) { return values[a] < values[b]; });
  return ranks_from_order(order);
}

std::vector<std::uint32_t> ranks_from_order(const std::vector<OpId>& order) {
  std::vector<std::uint32_t> ranks(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) ranks[order[i]] = i;
  return ranks;
}

std::string placement_to_json(const Placement& placement, const Provenance& provenance) {
  nlohmann::ordered_json file = {{"format", kFormat},
                                 {"version", kVersion},
                                 {"method", provenance.method},
                                 {"winner", provenance.winner},
                                 {"doppler", provenance.version},
                                 {"budget", provenance.budget},
                                 {"seed", provenance.seed},
                                 {"evaluations", provenance.evaluations},
                                 {"graph", provenance.graph},
                                 {"machine", provenance.machine},
                                 {"discipline", provenance.discipline},
                                 {"links", provenance.links},
                                 {"makespan", provenance.makespan},
                                 {"lower_bound", provenance.lower_bound},
                                 {"assignment", placement.device_of_op}};
  if (!provenance.fingerprint.empty()) file["fingerprint"] = provenance.fingerprint;
  if (provenance.shard > 0) file["shard"] = provenance.shard;
  if (!placement.priority.empty()) file["priority"] = placement.priority;
  if (!placement.cause_of_op.empty()) {
    auto& causes = file["causes"] = nlohmann::ordered_json::array();
    for (const Cause cause : placement.cause_of_op) causes.push_back(to_string(cause));
  }
  // Names and paths need not be UTF-8.
  return file.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

PlacementFile parse_placement(const std::string& where, std::string_view json_text) {
  const json file = formats::parse_json(where, json_text, {});
  if (!file.is_object() || file.value("format", json()) != kFormat)
    throw InputError(fmt::format("{}: no \"format\": \"{}\"; required a placement file", where, kFormat));
  if (file.value("version", json()) != kVersion)
    throw InputError(fmt::format("{}: version {}; required {}", where, file.value("version", json()).dump(), kVersion));
  PlacementFile result{{}, provenance_of(file)};
  Placement& placement = result.placement;
  for (const json& device : required_array(where, file, "assignment")) {
    if (!device.is_number_unsigned() || device.get<std::uint64_t>() > std::numeric_limits<DeviceId>::max())
      throw InputError(fmt::format("{}: op {} is assigned to device {}; required the number of a device", where,
                                   placement.device_of_op.size(), device.dump()));
    placement.device_of_op.push_back(device.get<DeviceId>());
  }
  if (file.contains("priority")) {
    std::vector<double> numbers;
    for (const json& number : required_array(where, file, "priority")) {
      if (!number.is_number())
        throw InputError(
            fmt::format("{}: op {} has priority {}; required a number", where, numbers.size(), number.dump()));
      numbers.push_back(number.get<double>());
    }
    if (numbers.size() != placement.device_of_op.size())
      throw InputError(fmt::format("{}: 'priority' has {} entries; required {}, one per op", where, numbers.size(),
                                   placement.device_of_op.size()));
    placement.priority = ranks_of(numbers);
  }
  if (file.contains("causes")) {
    for (const json& cause : required_array(where, file, "causes"))
      placement.cause_of_op.push_back(
          parse_enum(cause.is_string() ? cause.get<std::string>() : cause.dump(), where + ": 'causes'", kCauses));
    if (placement.cause_of_op.size() != placement.device_of_op.size())
      throw InputError(fmt::format("{}: 'causes' has {} entries; required {}, one per op", where,
                                   placement.cause_of_op.size(), placement.device_of_op.size()));
  }
  return result;
}

void check_size(const std::string& where, const Placement& placement, OpId op_count, DeviceId device_count) {
  if (placement.device_of_op.size() != op_count)
    throw InputError(fmt::format("{}: 'assignment' has {} entries; required {}, one per op", where,
                                 placement.device_of_op.size(), op_count));
  for (OpId op = 0; op < op_count; ++op)
    if (placement.device_of_op[op] >= device_count)
      throw InputError(fmt::format("{}: op {} is assigned to device {}; required a device below {}", where, op,
                                   placement.device_of_op[op], device_count));
}

}  // namespace doppler
