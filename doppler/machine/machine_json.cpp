#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/graph/formats/json_reader.h"
#include "doppler/machine.h"

// The machine file, described in docs/machines.md.
namespace doppler {
namespace {

using formats::Json;
using formats::JsonFields;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-machine";
constexpr int kVersion = 1;

// Leaves the default if the key is not there.
void read(const JsonFields& fields, const char* key, unsigned& target) {
  const Json* value = fields.find(key);
  if (value == nullptr) return;
  if (!value->is_number_unsigned() || *value < 1 || *value > std::numeric_limits<unsigned>::max())
    fields.fail(key, "a whole number, at least 1");
  target = value->get<unsigned>();
}

void read(const JsonFields& fields, const char* key, double& target) { target = fields.number_or(key, target); }

// A number of bytes, or text such as "16GiB".
Bytes read_size(const JsonFields& fields, const char* key) {
  const Json* value = fields.find(key);
  if (value == nullptr) return 0;
  if (value->is_string()) return parse_bytes(fields.string(key), fmt::format("{}: '{}'", fields.where(), key));
  return fields.bytes(key);
}

const Json& array(const JsonFields& fields, const char* key) {
  const Json* value = fields.find(key);
  if (value == nullptr || !value->is_array()) fields.fail(key, "an array");
  return *value;
}

Rate parse_rate(const std::string& where, const Json& value) {
  const JsonFields fields(where, value);
  fields.refuse_other_keys({"kind", "dtype", "flops_per_second"});
  return {fields.string_or("kind", "*"), fields.string_or("dtype", "*"), fields.number("flops_per_second")};
}

Measured parse_measured(const std::string& where, const Json& value) {
  const JsonFields fields(where, value);
  fields.refuse_other_keys({"kind", "dtype", "flops", "bytes_read", "bytes_written", "seconds"});
  return {fields.string("kind"),      fields.string("dtype"),        fields.number("flops"),
          fields.bytes("bytes_read"), fields.bytes("bytes_written"), fields.number("seconds")};
}

// With "count": N the entry stands for N devices, its name followed by 0 … N-1.
void parse_devices(const std::string& where, const Json& value, std::vector<Device>& devices) {
  const JsonFields fields(where, value);
  fields.refuse_other_keys({"name", "count", "type", "rates", "memory_bytes_per_second", "overhead", "memory", "slots",
                            "measured", "slowdown"});
  Device device;
  device.name = fields.string("name");
  device.type = fields.string("type");
  read(fields, "memory_bytes_per_second", device.memory_bytes_per_second);
  read(fields, "overhead", device.overhead);
  device.memory = read_size(fields, "memory");
  read(fields, "slots", device.slots);
  read(fields, "slowdown", device.slowdown);
  if (fields.find("measured") != nullptr) {
    const Json& ops = array(fields, "measured");
    for (std::size_t i = 0; i < ops.size(); ++i)
      device.measured.push_back(parse_measured(fmt::format("{}: measured[{}]", where, i), ops[i]));
  }
  if (fields.find("rates") != nullptr) {
    const Json& rates = array(fields, "rates");
    for (std::size_t i = 0; i < rates.size(); ++i)
      device.rates.push_back(parse_rate(fmt::format("{}: rates[{}]", where, i), rates[i]));
  }
  if (fields.find("count") == nullptr) {
    devices.push_back(std::move(device));
    return;
  }
  unsigned count = 0;
  read(fields, "count", count);
  if (count > kMostDevices) fields.fail("count", fmt::format("at most {}", kMostDevices));
  const std::string name = device.name;
  for (unsigned i = 0; i < count; ++i) {
    device.name = fmt::format("{}{}", name, i);
    devices.push_back(device);
  }
}

void read_link(const JsonFields& fields, Link& link) {
  read(fields, "latency", link.latency);
  read(fields, "bytes_per_second", link.bytes_per_second);
  read(fields, "channels", link.channels);
  read(fields, "cost_factor", link.cost_factor);
}

DeviceId find_device(const JsonFields& fields, const std::string& name, const std::vector<Device>& devices) {
  for (DeviceId id = 0; id < devices.size(); ++id)
    if (devices[id].name == name) return id;
  throw InputError(fmt::format("{}: no device '{}'; required the name of one of the {} devices", fields.where(), name,
                               devices.size()));
}

struct Pair {
  DeviceId a, b;
  bool both_ways;
};

Pair parse_pair(const JsonFields& fields, const std::vector<Device>& devices) {
  Pair pair{};
  if (fields.find("between") != nullptr) {
    const std::vector<std::string> names = fields.strings("between");
    if (names.size() != 2) fields.fail("between", "two device names");
    if (fields.find("from") != nullptr || fields.find("to") != nullptr)
      throw InputError(fmt::format("{}: 'between' and 'from'/'to'; required one or the other", fields.where()));
    pair = {find_device(fields, names[0], devices), find_device(fields, names[1], devices), true};
  } else {
    pair = {find_device(fields, fields.string("from"), devices), find_device(fields, fields.string("to"), devices),
            false};
  }
  if (pair.a == pair.b)
    throw InputError(
        fmt::format("{}: from '{}' to itself; required two different devices", fields.where(), devices[pair.a].name));
  return pair;
}

// "default" is every link; each entry of "pairs" changes one link ("from", "to") or two ("between"), and only
// the properties that it names.
std::vector<Link> parse_links(const std::string& where, const Json* value, const std::vector<Device>& devices) {
  Link usual;
  if (value == nullptr) return std::vector<Link>(devices.size() * devices.size(), usual);
  const JsonFields fields(where, *value);
  fields.refuse_other_keys({"model", "default", "pairs"});
  if (const Json* given = fields.find("default")) {
    const JsonFields entry(where + ": default", *given);
    entry.refuse_other_keys({"latency", "bytes_per_second", "channels", "cost_factor"});
    read_link(entry, usual);
  }
  std::vector<Link> links(devices.size() * devices.size(), usual);
  if (fields.find("pairs") == nullptr) return links;
  const Json& pairs = array(fields, "pairs");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const JsonFields entry(fmt::format("{}: pairs[{}]", where, i), pairs[i]);
    entry.refuse_other_keys({"between", "from", "to", "latency", "bytes_per_second", "channels", "cost_factor"});
    const Pair pair = parse_pair(entry, devices);
    read_link(entry, links[pair.a * devices.size() + pair.b]);
    if (pair.both_ways) read_link(entry, links[pair.b * devices.size() + pair.a]);
  }
  return links;
}

Links parse_link_model(const std::string& where, const Json* value) {
  if (value == nullptr) return Links::free;
  const JsonFields fields(where, *value);
  if (fields.find("model") == nullptr) return Links::free;
  try {
    return doppler::parse_links(fields.string("model"));
  } catch (const InputError&) {
    fields.fail("model", "\"free\", \"channels\", \"receiver\" or \"shared\"");
  }
}

// A number is the sigma of everything.
Jitter parse_jitter(const JsonFields& file) {
  const Json* value = file.find("jitter");
  if (value == nullptr) return {};
  if (value->is_number()) return file.number("jitter");
  if (!value->is_object()) file.fail("jitter", "a number or an object");
  const JsonFields fields(file.where() + ": jitter", *value);
  fields.refuse_other_keys({"sigma", "transfers", "kinds", "tail"});
  Jitter jitter = fields.number("sigma");
  read(fields, "transfers", jitter.transfers);
  if (fields.find("kinds") != nullptr) {
    const Json& kinds = array(fields, "kinds");
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const JsonFields entry(fmt::format("{}: kinds[{}]", fields.where(), i), kinds[i]);
      entry.refuse_other_keys({"kind", "sigma"});
      jitter.kinds.push_back({entry.string("kind"), entry.number("sigma")});
    }
  }
  if (const Json* tail = fields.find("tail")) {
    const JsonFields entry(fields.where() + ": tail", *tail);
    entry.refuse_other_keys({"probability", "factor"});
    jitter.tail = {entry.number("probability"), entry.number("factor")};
  }
  return jitter;
}

ordered_json jitter_json(const Jitter& jitter) {
  if (jitter.plain()) return jitter.sigma;
  ordered_json result = {{"sigma", jitter.sigma}, {"transfers", jitter.transfers}};
  for (const Jitter::Kind& kind : jitter.kinds) result["kinds"].push_back({{"kind", kind.kind}, {"sigma", kind.sigma}});
  if (jitter.tail != Jitter::Tail())
    result["tail"] = {{"probability", jitter.tail.probability}, {"factor", jitter.tail.factor}};
  return result;
}

std::optional<Emulation> parse_emulation(const std::string& where, const JsonFields& file) {
  const Json* value = file.find("emulation");
  if (value == nullptr) return std::nullopt;
  const JsonFields fields(where + ": emulation", *value);
  fields.refuse_other_keys({"overhead", "latency", "jitter"});
  Emulation emulation;
  read(fields, "overhead", emulation.overhead);
  read(fields, "latency", emulation.latency);
  emulation.jitter = parse_jitter(fields);
  return emulation;
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
    rates.push_back({{"kind", rate.kind}, {"dtype", rate.dtype}, {"flops_per_second", rate.flops_per_second}});
  ordered_json result = {{"name", device.name},
                         {"type", device.type},
                         {"rates", rates},
                         {"memory_bytes_per_second", device.memory_bytes_per_second},
                         {"overhead", device.overhead},
                         {"memory", device.memory},
                         {"slots", device.slots}};
  if (device.slowdown != 1) result["slowdown"] = device.slowdown;
  for (const Measured& op : device.measured)
    result["measured"].push_back({{"kind", op.kind},
                                  {"dtype", op.dtype},
                                  {"flops", op.flops},
                                  {"bytes_read", op.bytes_read},
                                  {"bytes_written", op.bytes_written},
                                  {"seconds", op.seconds}});
  return result;
}

// The link that most pairs have; the first of equals.
Link most_common_link(const Machine& machine) {
  std::vector<std::pair<Link, std::size_t>> counts;
  for (DeviceId src = 0; src < machine.device_count(); ++src) {
    for (DeviceId dst = 0; dst < machine.device_count(); ++dst) {
      if (src == dst) continue;
      const Link& link = machine.link(src, dst);
      const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == link; });
      if (found == counts.end())
        counts.emplace_back(link, 1);
      else
        ++found->second;
    }
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? Link() : most->first;
}

}  // namespace

Machine parse_machine(const std::string& where, std::string_view json_text) {
  const Json file = formats::parse_json(where, json_text, {});
  const JsonFields fields(where, file);
  if (fields.find("format") == nullptr || *fields.find("format") != kFormat)
    fields.fail("format", fmt::format("\"{}\"", kFormat));
  if (fields.find("version") == nullptr || *fields.find("version") != kVersion)
    fields.fail("version", fmt::to_string(kVersion));
  fields.refuse_other_keys({"format", "version", "name", "jitter", "devices", "links", "emulation"});
  std::vector<Device> devices;
  const Json& entries = array(fields, "devices");
  for (std::size_t i = 0; i < entries.size() && devices.size() <= kMostDevices; ++i)
    parse_devices(fmt::format("{}: devices[{}]", where, i), entries[i], devices);
  std::vector<Link> links = parse_links(where + ": links", fields.find("links"), devices);
  const Links model = parse_link_model(where + ": links", fields.find("links"));
  Jitter jitter = parse_jitter(fields);
  std::optional<Emulation> emulation = parse_emulation(where, fields);
  try {
    return Machine(fields.string_or("name", where), std::move(devices), std::move(links), model, std::move(jitter))
        .with_emulation(std::move(emulation));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

std::string machine_to_json(const Machine& machine) {
  ordered_json file = {{"format", kFormat}, {"version", kVersion}, {"name", machine.name()}};
  if (machine.jitter() != Jitter()) file["jitter"] = jitter_json(machine.jitter());
  auto& devices = file["devices"] = ordered_json::array();
  for (DeviceId id = 0; id < machine.device_count(); ++id) devices.push_back(device_json(machine.device(id)));
  const Link usual = most_common_link(machine);
  if (machine.link_model() != Links::free) file["links"]["model"] = to_string(machine.link_model());
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
  if (const auto& emulation = machine.emulation())
    file["emulation"] = {
        {"overhead", emulation->overhead}, {"latency", emulation->latency}, {"jitter", jitter_json(emulation->jitter)}};
  return file.dump(2) + "\n";
}

}  // namespace doppler
