#include "doppler/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/parse_enum.h"
#include "doppler/base/similar.h"
#include "doppler/machine/jitter.h"
#include "doppler/machine/kinds.h"

namespace doppler {
namespace {

constexpr std::string_view kUniform = "uniform:";

// A non-negative integer and nothing else.
std::optional<std::uint64_t> parse_index(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool plausible(double value) { return value >= 0 && std::isfinite(value); }  // false for NaN too

void check_number(const std::string& where, std::string_view what, double value) {
  if (!plausible(value))
    throw InputError(fmt::format("{}: {} is {}; required a finite number, not negative", where, what, value));
}

// Ops on a device or transfers on a link at the same time; simulations keep a clock for each.
constexpr unsigned kMostAtATime = 4096;

void check_count(const std::string& where, std::string_view what, unsigned count) {
  if (count == 0 || count > kMostAtATime)
    throw InputError(fmt::format("{}: {} is {}; required between 1 and {}", where, what, count, kMostAtATime));
}

void check_device(const std::string& machine, const Device& device) {
  const std::string where = fmt::format("{}: device '{}'", machine, device.name);
  if (device.name.empty()) throw InputError(fmt::format("{}: a device has no name; required one", machine));
  if (device.type.empty()) throw InputError(fmt::format("{}: no type; required one, such as 'gpu' or 'cpu'", where));
  check_number(where, "memory_bytes_per_second", device.memory_bytes_per_second);
  check_number(where, "overhead", device.overhead);
  check_count(where, "slots", device.slots);
  if (!(device.slowdown > 0 && plausible(device.slowdown)))
    throw InputError(fmt::format("{}: slowdown is {}; required above 0 and finite", where, device.slowdown));
  for (const Measured& op : device.measured) {
    check_number(where, "measured flops", op.flops);
    check_number(where, "measured seconds", op.seconds);
  }
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Rate& rate : device.rates) {
    if (!(rate.flops_per_second > 0 && std::isfinite(rate.flops_per_second)))
      throw InputError(fmt::format("{}: rate for kind '{}', dtype '{}' is {}; required above 0 and finite", where,
                                   rate.kind, rate.dtype, rate.flops_per_second));
    if (!seen.emplace(rate.kind, rate.dtype).second)
      throw InputError(
          fmt::format("{}: two rates for kind '{}', dtype '{}'; required one", where, rate.kind, rate.dtype));
  }
}

void check_link(const std::string& machine, const Device& src, const Device& dst, const Link& link) {
  if (plausible(link.latency) && plausible(link.bytes_per_second) && plausible(link.cost_factor) && link.channels > 0 &&
      link.channels <= kMostAtATime)
    return;  // a thousand devices have a million links: no text for the good ones
  const std::string where = fmt::format("{}: link '{}' to '{}'", machine, src.name, dst.name);
  check_number(where, "latency", link.latency);
  check_number(where, "bytes_per_second", link.bytes_per_second);
  check_number(where, "cost_factor", link.cost_factor);
  check_count(where, "channels", link.channels);
}

Machine uniform_by_name(const std::string& name) {
  const std::string_view spec = std::string_view(name).substr(kUniform.size());
  const std::size_t colon = spec.find(':');
  const auto devices = parse_index(spec.substr(0, colon));
  if (!devices || *devices == 0 || *devices > kMostDevices)
    throw InputError(fmt::format("machine: found '{}'; required uniform:N or uniform:N:MEMORY with N from 1 to {}",
                                 name, kMostDevices));
  const Bytes memory = colon == std::string_view::npos ? 0 : parse_bytes(spec.substr(colon + 1), name);
  return uniform_machine(static_cast<DeviceId>(*devices), memory);
}

}  // namespace

std::string_view to_string(Links links) {
  switch (links) {
    case Links::free:
      return "free";
    case Links::channels:
      return "channels";
    case Links::receiver:
      return "receiver";
    case Links::shared:
      return "shared";
  }
  throw InternalError("unknown link model");
}
Links parse_links(std::string_view text) {
  return parse_enum(text, "links", std::array{Links::free, Links::channels, Links::receiver, Links::shared});
}

Machine::Machine(std::string name, std::vector<Device> devices, std::vector<Link> links, Links model, Jitter jitter)
    : name_(std::move(name)),
      devices_(std::move(devices)),
      links_(std::move(links)),
      link_model_(model),
      jitter_(std::move(jitter)) {
  const std::string where = fmt::format("machine '{}'", name_);
  check_jitter(where, jitter_);
  if (devices_.empty() || devices_.size() > kMostDevices)
    throw InputError(fmt::format("{}: {} devices; required 1 to {}", where, devices_.size(), kMostDevices));
  DOPPLER_CHECK(links_.size() == devices_.size() * devices_.size(), "{} links for {} devices", links_.size(),
                devices_.size());
  std::set<std::string_view> names;
  for (const Device& device : devices_) {
    check_device(where, device);
    if (!names.insert(device.name).second)
      throw InputError(fmt::format("{}: two devices are named '{}'; required unique names", where, device.name));
  }
  for (DeviceId src = 0; src < device_count(); ++src)
    for (DeviceId dst = 0; dst < device_count(); ++dst)
      if (src != dst) check_link(where, device(src), device(dst), link(src, dst));
}

Machine Machine::with_jitter(Jitter jitter) const {
  check_jitter(fmt::format("machine '{}'", name_), jitter);
  Machine other = *this;
  if (other.emulation_) other.emulation_->jitter = jitter;
  other.jitter_ = std::move(jitter);
  return other;
}

Machine Machine::with_reserve(double share) const {
  if (!(share >= 0 && share < 1))
    throw InputError(fmt::format("machine '{}': reserve is {}; required from 0 to below 1", name_, share));
  Machine other = with_memory(1 - share);
  if (share > 0) other.name_ = fmt::format("{}, {:g} % reserved", name_, 100 * share);
  return other;
}

Machine Machine::with_memory(double factor) const {
  Machine other = *this;
  for (Device& device : other.devices_) {
    if (device.memory == 0) continue;
    const Bytes scaled = static_cast<Bytes>(static_cast<double>(device.memory) * factor);
    device.memory = factor > 0 ? std::max<Bytes>(1, scaled) : 0;  // 0 would be no limit at all
  }
  return other;
}

Machine Machine::with_links(double factor) const {
  Machine other = *this;
  for (Link& link : other.links_) {
    link.latency /= factor;
    link.bytes_per_second *= factor;
    link.cost_factor /= factor;
  }
  return other;
}

Machine Machine::with_more(DeviceId like, DeviceId count) const {
  std::vector<Device> devices = devices_;
  std::vector<DeviceId> origin;
  for (DeviceId id = 0; id < device_count(); ++id) origin.push_back(id);
  for (DeviceId i = 0; i < count; ++i) {
    Device copy = devices_.at(like);
    copy.name = fmt::format("{}+{}", copy.name, i + 1);
    devices.push_back(std::move(copy));
    origin.push_back(like);
  }
  // Copies are linked to one another, and to their origin, as it is to the nearest of the others.
  DeviceId partner = like;
  for (DeviceId id = 0; id < device_count(); ++id)
    if (id != like && (partner == like || link(like, id).bytes_per_second > link(like, partner).bytes_per_second))
      partner = id;
  std::vector<Link> links;
  for (const DeviceId src : origin)
    for (const DeviceId dst : origin) links.push_back(src == dst ? link(like, partner) : link(src, dst));
  return Machine(fmt::format("{} + {}", name_, count), std::move(devices), std::move(links), link_model_, jitter_);
}

Machine Machine::with_emulation(std::optional<Emulation> emulation) const {
  Machine other = *this;
  other.emulation_ = std::move(emulation);
  if (!other.emulation_) return other;
  const std::string where = fmt::format("machine '{}': emulation", name_);
  const Seconds overhead = other.emulation_->overhead, latency = other.emulation_->latency;
  check_number(where, "overhead", overhead);
  check_number(where, "latency", latency);
  check_jitter(where, other.emulation_->jitter);
  for (DeviceId src = 0; src < device_count(); ++src) {
    if (overhead > device(src).overhead)
      throw InputError(fmt::format("{}: overhead is {}; required at most that of device '{}', {}", where, overhead,
                                   device(src).name, device(src).overhead));
    for (DeviceId dst = 0; dst < device_count(); ++dst)
      if (src != dst && latency > link(src, dst).latency)
        throw InputError(fmt::format("{}: latency is {}; required at most that of the link '{}' to '{}', {}", where,
                                     latency, device(src).name, device(dst).name, link(src, dst).latency));
  }
  return other;
}

Machine Machine::without_emulation() const {
  Machine other = *this;
  if (!emulation_) return other;
  for (Device& device : other.devices_) {
    device.overhead -= emulation_->overhead;
    for (Measured& op : device.measured) op.seconds = std::max(0.0, op.seconds - emulation_->overhead);
  }
  for (DeviceId src = 0; src < device_count(); ++src)
    for (DeviceId dst = 0; dst < device_count(); ++dst)
      if (src != dst) other.links_[src * devices_.size() + dst].latency -= emulation_->latency;
  other.jitter_ = emulation_->jitter;
  other.emulation_.reset();
  return other;
}

DeviceId Machine::device_by_name(std::string_view name) const {
  std::string names;
  for (DeviceId id = 0; id < device_count(); ++id) {
    if (devices_[id].name == name) return id;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", devices_[id].name);
  }
  if (const auto index = parse_index(name); index && *index < device_count()) return static_cast<DeviceId>(*index);
  throw InputError(fmt::format("machine '{}': no device '{}'; required an index below {} or one of {}", name_, name,
                               device_count(), names));
}

Machine uniform_machine(DeviceId devices, Bytes memory) {
  std::vector<Device> list;
  for (DeviceId id = 0; id < devices; ++id) {
    Device device;
    device.name = fmt::format("device{}", id);
    device.type = "uniform";
    device.rates = {{"*", "*", 1e12}};
    device.memory_bytes_per_second = gigabytes_per_second(100);
    device.memory = memory;
    list.push_back(std::move(device));
  }
  Link link;
  link.bytes_per_second = gigabytes_per_second(1);
  std::string name = fmt::format("{}{}", kUniform, devices);
  if (memory > 0) name += fmt::format(":{}", memory);
  return Machine(std::move(name), std::move(list), std::vector<Link>(std::size_t{devices} * devices, link));
}

bool is_machine_name(const std::string& name) {
  if (name.starts_with(kUniform)) return true;
  const auto presets = machine_presets();
  if (std::any_of(presets.begin(), presets.end(), [&](const MachinePreset& preset) { return preset.name == name; }))
    return true;
  const auto kinds = device_products();
  const std::string first = name.substr(0, name.find(':'));
  return name.find(':') != std::string::npos &&
         std::any_of(kinds.begin(), kinds.end(), [&](const DeviceProduct& kind) { return kind.name == first; });
}

Machine load_machine(const std::string& name_or_path) {
  if (name_or_path.starts_with(kUniform)) return uniform_by_name(name_or_path);
  std::string listed;
  std::vector<std::string> names;
  for (const MachinePreset& preset : machine_presets()) {
    if (preset.name == name_or_path) return preset.make();
    listed += fmt::format("{}, ", preset.name);
    names.emplace_back(preset.name);
  }
  if (is_machine_name(name_or_path)) return machine_of_kinds(name_or_path);
  // A bare word that is no preset is a misspelt preset more often than a missing file; say both.
  std::string text;
  try {
    text = read_file(name_or_path);
  } catch (const InputError& error) {
    for (const DeviceProduct& kind : device_products()) names.push_back(fmt::format("{}:4", kind.name));
    throw InputError(fmt::format("machine: {}, or one of {}uniform:N, KIND:N as 'doppler machines' lists them{}",
                                 error.what(), listed, did_you_mean(name_or_path, names)));
  }
  return parse_machine(name_or_path, text);
}

}  // namespace doppler
