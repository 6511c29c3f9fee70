#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/machine/machine.h"

// The machine file, described in docs/machines.md.
namespace doppler {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-machine";
constexpr int kVersion = 1;

// One object of the file: typed access to its keys, and an error for every key that nobody asked for.
class Object {
 public:
  Object(std::string where, const json& value) : where_(std::move(where)), value_(&value) {
    if (!value.is_object())
      throw InputError(fmt::format("{}: found {}; required an object", where_, value.type_name()));
  }

  const std::string& where() const { return where_; }
  const json* find(const char* key) {
    known_.insert(key);
    const auto found = value_->find(key);
    return found == value_->end() ? nullptr : &*found;
  }
  const json& required(const char* key) {
    const json* found = find(key);
    if (found == nullptr) throw InputError(fmt::format("{}: no '{}'; required", where_, key));
    return *found;
  }
  std::string text(const char* key, const json& value) const {
    if (!value.is_string())
      throw InputError(fmt::format("{}: '{}' is {}; required a string", where_, key, value.dump()));
    return value.get<std::string>();
  }
  void read(const char* key, std::string& target) {
    if (const json* value = find(key)) target = text(key, *value);
  }
  void read(const char* key, double& target) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number())
      throw InputError(fmt::format("{}: '{}' is {}; required a number", where_, key, value->dump()));
    target = value->get<double>();
  }
  void read(const char* key, unsigned& target) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > std::numeric_limits<unsigned>::max())
      throw InputError(
          fmt::format("{}: '{}' is {}; required a whole number, not negative", where_, key, value->dump()));
    target = value->get<unsigned>();
  }
  // A number of bytes, or text such as "16GiB".
  void read_bytes(const char* key, Bytes& target) {
    const json* value = find(key);
    if (value == nullptr) return;
    const std::string where = fmt::format("{}: '{}'", where_, key);
    if (value->is_string())
      target = parse_bytes(value->get<std::string>(), where);
    else if (value->is_number_unsigned())
      target = value->get<Bytes>();
    else
      throw InputError(fmt::format("{} is {}; required a number of bytes or a size such as \"16GiB\"", where,
                                   value->dump()));
  }
  void refuse_other_keys() const {
    for (const auto& [key, value] : value_->items()) {
      if (known_.contains(key)) continue;
      throw InputError(
          fmt::format("{}: unknown key '{}'; required one of {}", where_, key, fmt::join(known_, ", ")));
    }
  }

 private:
  std::string where_;
  const json* value_;
  std::set<std::string> known_;
};

const json& required_array(Object& object, const char* key) {
  const json& value = object.required(key);
  if (!value.is_array())
    throw InputError(
        fmt::format("{}: '{}' is {}; required an array", object.where(), key, value.type_name()));
  return value;
}

Rate parse_rate(const std::string& where, const json& value) {
  Object object(where, value);
  Rate rate;
  object.read("kind", rate.kind);
  object.read("dtype", rate.dtype);
  object.required("flops_per_second");
  object.read("flops_per_second", rate.flops_per_second);
  object.refuse_other_keys();
  return rate;
}

// With "count": N the entry stands for N devices, its name followed by 0 … N-1.
void parse_devices(const std::string& where, const json& value, std::vector<Device>& devices) {
  Object object(where, value);
  Device device;
  device.name = object.text("name", object.required("name"));
  device.type = object.text("type", object.required("type"));
  object.read("memory_bytes_per_second", device.memory_bytes_per_second);
  object.read("overhead", device.overhead);
  object.read_bytes("memory", device.memory);
  object.read("slots", device.slots);
  if (object.find("rates") != nullptr) {
    const json& rates = required_array(object, "rates");
    for (std::size_t i = 0; i < rates.size(); ++i)
      device.rates.push_back(parse_rate(fmt::format("{}: rates[{}]", where, i), rates[i]));
  }
  unsigned count = 0;
  object.read("count", count);
  object.refuse_other_keys();
  if (object.find("count") == nullptr) {
    devices.push_back(std::move(device));
    return;
  }
  if (count == 0 || count > kMostDevices)
    throw InputError(fmt::format("{}: 'count' is {}; required 1 to {}", where, count, kMostDevices));
  const std::string name = device.name;
  for (unsigned i = 0; i < count; ++i) {
    device.name = fmt::format("{}{}", name, i);
    devices.push_back(device);
  }
}

void read_link(Object& object, Link& link) {
  object.read("latency", link.latency);
  object.read("bytes_per_second", link.bytes_per_second);
  object.read("channels", link.channels);
  object.read("cost_factor", link.cost_factor);
}

DeviceId find_device(const Object& object, const char* key, const json& value,
                     const std::vector<Device>& devices) {
  const std::string name = object.text(key, value);
  for (DeviceId id = 0; id < devices.size(); ++id)
    if (devices[id].name == name) return id;
  throw InputError(fmt::format("{}: no device '{}'; required the name of one of the {} devices",
                               object.where(), name, devices.size()));
}

struct Pair {
  DeviceId a, b;
  bool both_ways;
};

Pair parse_pair(Object& object, const std::vector<Device>& devices) {
  Pair pair{};
  if (const json* between = object.find("between")) {
    if (!between->is_array() || between->size() != 2)
      throw InputError(
          fmt::format("{}: 'between' is {}; required two device names", object.where(), between->dump()));
    if (object.find("from") != nullptr || object.find("to") != nullptr)
      throw InputError(
          fmt::format("{}: 'between' and 'from'/'to'; required one or the other", object.where()));
    pair = {find_device(object, "between", (*between)[0], devices),
            find_device(object, "between", (*between)[1], devices), true};
  } else {
    pair = {find_device(object, "from", object.required("from"), devices),
            find_device(object, "to", object.required("to"), devices), false};
  }
  if (pair.a == pair.b)
    throw InputError(fmt::format("{}: from '{}' to itself; required two different devices", object.where(),
                                 devices[pair.a].name));
  return pair;
}

// "default" is every link; each entry of "pairs" changes one link ("from", "to") or two ("between"), and only
// the properties that it names.
std::vector<Link> parse_links(const std::string& where, const json* value,
                              const std::vector<Device>& devices) {
  Link usual;
  if (value == nullptr) return std::vector<Link>(devices.size() * devices.size(), usual);
  Object object(where, *value);
  if (const json* given = object.find("default")) {
    Object entry(where + ": default", *given);
    read_link(entry, usual);
    entry.refuse_other_keys();
  }
  std::vector<Link> links(devices.size() * devices.size(), usual);
  if (object.find("pairs") != nullptr) {
    const json& pairs = required_array(object, "pairs");
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      Object entry(fmt::format("{}: pairs[{}]", where, i), pairs[i]);
      const Pair pair = parse_pair(entry, devices);
      read_link(entry, links[pair.a * devices.size() + pair.b]);
      if (pair.both_ways) read_link(entry, links[pair.b * devices.size() + pair.a]);
      entry.refuse_other_keys();
    }
  }
  object.refuse_other_keys();
  return links;
}

ordered_json link_json(const Link& link) {
  return {{"latency", link.latency},
          {"bytes_per_second", link.bytes_per_second},
          {"channels", link.channels},
          {"cost_factor", link.cost_factor}};
}

ordered_json device_json(const Device& device) {
  ordered_json rates = ordered_json::array();
  for (const Rate& rate : device.rates)
    rates.push_back(
        {{"kind", rate.kind}, {"dtype", rate.dtype}, {"flops_per_second", rate.flops_per_second}});
  return {{"name", device.name},
          {"type", device.type},
          {"rates", rates},
          {"memory_bytes_per_second", device.memory_bytes_per_second},
          {"overhead", device.overhead},
          {"memory", device.memory},
          {"slots", device.slots}};
}

// The link that most pairs have; the first of equals.
Link most_common_link(const Machine& machine) {
  std::vector<std::pair<Link, std::size_t>> counts;
  for (DeviceId src = 0; src < machine.device_count(); ++src) {
    for (DeviceId dst = 0; dst < machine.device_count(); ++dst) {
      if (src == dst) continue;
      const Link& link = machine.link(src, dst);
      const auto found =
          std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == link; });
      if (found == counts.end())
        counts.emplace_back(link, 1);
      else
        ++found->second;
    }
  }
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? Link() : most->first;
}

}  // namespace

Machine parse_machine(const std::string& where, std::string_view json_text) {
  json file;
  try {
    file = json::parse(json_text);
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{}: not JSON ({}); required a machine file", where, error.what()));
  }
  if (!file.is_object() || file.value("format", json()) != kFormat)
    throw InputError(fmt::format("{}: no \"format\": \"{}\"; required a machine file", where, kFormat));
  Object object(where, file);
  object.find("format");
  if (const json& version = object.required("version"); version != kVersion)
    throw InputError(fmt::format("{}: version {}; required {}", where, version.dump(), kVersion));
  std::string name = where;
  object.read("name", name);
  std::vector<Device> devices;
  const json& entries = required_array(object, "devices");
  for (std::size_t i = 0; i < entries.size() && devices.size() <= kMostDevices; ++i)
    parse_devices(fmt::format("{}: devices[{}]", where, i), entries[i], devices);
  const json* link_entries = object.find("links");
  object.refuse_other_keys();
  std::vector<Link> links = parse_links(where + ": links", link_entries, devices);
  try {
    return Machine(std::move(name), std::move(devices), std::move(links));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

std::string machine_to_json(const Machine& machine) {
  ordered_json file = {{"format", kFormat}, {"version", kVersion}, {"name", machine.name()}};
  auto& devices = file["devices"] = ordered_json::array();
  for (DeviceId id = 0; id < machine.device_count(); ++id) devices.push_back(device_json(machine.device(id)));
  const Link usual = most_common_link(machine);
  file["links"]["default"] = link_json(usual);
  auto& pairs = file["links"]["pairs"] = ordered_json::array();
  for (DeviceId src = 0; src < machine.device_count(); ++src) {
    for (DeviceId dst = 0; dst < machine.device_count(); ++dst) {
      if (src == dst || machine.link(src, dst) == usual) continue;
      ordered_json pair = {{"from", machine.device(src).name}, {"to", machine.device(dst).name}};
      pair.update(link_json(machine.link(src, dst)));
      pairs.push_back(std::move(pair));
    }
  }
  return file.dump(2) + "\n";
}

}  // namespace doppler
