#pragma once

// A machine: devices, how fast they compute, how much they hold, and how long tensors take between them.
//
//   doppler::Machine four = doppler::load_machine("p100x4");        // a preset, "uniform:4", or a machine file
//   std::vector<doppler::Device> devices(2);
//   devices[0] = {.name = "gpu0", .type = "gpu", .rates = {{.flops_per_second = 9e12}}, .memory = 16ull << 30};
//   devices[1] = {.name = "cpu0", .type = "cpu", .rates = {{.flops_per_second = 1e12}}};
//   doppler::Machine mine("mine", devices, std::vector<doppler::Link>(4, {.latency = 1e-5, .bytes_per_second = 1e10}));
//
// Limits. Presets are data sheets, not measurements: 'doppler calibrate' measures the box it runs on
// (docs/machines.md). At most kMostDevices devices; a link belongs to one ordered pair, so what pairs share is not
// modelled.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/ids.h"
#include "doppler/jitter.h"
#include "doppler/units.h"

namespace doppler {

// The compute rate for ops of one kind and dtype; "*" matches any. The most specific match wins (kind before dtype).
struct Rate {
  std::string kind = "*";
  std::string dtype = "*";
  double flops_per_second = 0;
};

// What an op of exactly this kind and size was measured to take.
struct Measured {
  std::string kind, dtype;
  Flops flops = 0;
  Bytes bytes_read = 0, bytes_written = 0;
  Seconds seconds = 0;

  bool operator==(const Measured&) const = default;
};

struct Device {
  std::string name;                     // "gpu0"
  std::string type;                     // "gpu", "cpu", …; explicit costs are looked up by it
  std::vector<Rate> rates;              // empty: only ops with explicit costs can run here
  double memory_bytes_per_second = 0;   // 0: memory traffic is free
  Seconds overhead = 0;                 // per op, added to the roofline time
  Bytes memory = 0;                     // 0: unlimited
  unsigned slots = 1;                   // ops that run at the same time
  std::vector<Measured> measured = {};  // by calibration; goes before the rates
  double slowdown = 1;                  // multiplies the time of every op: a device that is slower than its type

  bool operator==(const Device&) const = default;
};
inline bool operator==(const Rate& a, const Rate& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.flops_per_second == b.flops_per_second;
}

// One direction between two devices.
struct Link {
  Seconds latency = 0;
  double bytes_per_second = 0;  // 0: unlimited
  unsigned channels = 1;        // transfers at the same time, in `channels` mode
  double cost_factor = 1;       // multiplies explicit transfer times (2: through the host)

  bool operator==(const Link&) const = default;
};

// How tensors move between devices.
enum class Links : std::uint8_t {
  free,      // pure delay, any number at a time; the published semantics
  channels,  // Link::channels at a time per direction, first come first served
  receiver,  // the destination copies them itself, between two of its ops: a box without a core to spare
  shared,    // the devices have one memory and hand over: nothing is copied, and Link::latency is all that it takes
};
// Whether no transfer waits for another: each takes its own time and nothing else.
constexpr bool are_delays(Links links) { return links == Links::free || links == Links::shared; }
std::string_view to_string(Links links);
Links parse_links(std::string_view text);  // throws InputError

// What of a machine's times is not the machine's but that of the threads that emulate it, on the box that it was
// calibrated on: they wake up late. Predictions contain it, and emulated devices leave it out of the time that they let
// pass.
struct Emulation {
  Seconds overhead = 0;  // of every device's overhead, and of every measured op
  Seconds latency = 0;   // of every link's latency
  Jitter jitter = {};    // how much times would vary without it

  bool operator==(const Emulation&) const = default;
};

// Devices and the links between every ordered pair of them.
class Machine {
 public:
  // `links` is row-major by (src, dst); the diagonal is ignored. Throws InputError unless names are unique,
  // there are 1 to kMostDevices devices, slots and channels are at least 1, jitter is within the limits of jitter.h,
  // and every number is finite and not negative.
  Machine(std::string name, std::vector<Device> devices, std::vector<Link> links, Links model = Links::free,
          Jitter jitter = {});

  const std::string& name() const { return name_; }
  DeviceId device_count() const { return static_cast<DeviceId>(devices_.size()); }
  const Device& device(DeviceId id) const { return devices_[id]; }
  const Link& link(DeviceId src, DeviceId dst) const { return links_[src * devices_.size() + dst]; }
  Links link_model() const { return link_model_; }  // by which rule it is simulated unless somebody asks for another
  // Says how much times vary within a run, which calibration measures.
  const Jitter& jitter() const { return jitter_; }
  // The same machine with another jitter. Throws InputError unless it is within the limits of jitter.h.
  Machine with_jitter(Jitter jitter) const;
  // The same machine where that share of every device's memory stays free. Throws InputError unless it is below 1.
  Machine with_reserve(double share) const;
  // The same machine with `count` more devices like one of its own, linked as that one is.
  Machine with_more(DeviceId like, DeviceId count) const;
  // The same machine whose memories (0: no limit), and whose links, are so many times as large or as fast.
  Machine with_memory(double factor) const;
  Machine with_links(double factor) const;
  const std::optional<Emulation>& emulation() const { return emulation_; }  // none unless it was calibrated emulated
  // The same machine with another, or none. Throws InputError if it is more than a device or a link has.
  Machine with_emulation(std::optional<Emulation> emulation) const;
  // The machine that is emulated: without what the emulation adds.
  Machine without_emulation() const;
  DeviceId device_by_name(std::string_view name) const;  // by name or by index; throws InputError

 private:
  std::string name_;
  std::vector<Device> devices_;
  std::vector<Link> links_;
  Links link_model_;
  Jitter jitter_;
  std::optional<Emulation> emulation_;
};

// More devices than this are refused: links are stored per pair.
inline constexpr DeviceId kMostDevices = 1024;

// Makes N equal devices for graphs that carry explicit costs. Ops without one take 1 s per Tflop or per 100 GB that they
// read and write, whichever is longer, and tensors without an explicit transfer time move at 1 GB/s: round numbers, to
// compare placements by.
// `memory` is the capacity of each device; 0 is no limit.
Machine uniform_machine(DeviceId devices, Bytes memory = 0);

// Takes a preset name ("p100x4"), kinds of devices with their numbers ("h100:8", "rtx4090:1+rtx3060:1"), "uniform:N",
// "uniform:N:MEMORY", or the path of a machine file (docs/machines.md). Throws InputError if it is none of these.
Machine load_machine(const std::string& name_or_path);
// Whether load_machine() knows the name without a file.
bool is_machine_name(const std::string& name);
// Reads the text of a machine file. Throws InputError naming `where`.
Machine parse_machine(const std::string& where, std::string_view json_text);
// Writes what parse_machine() reads back as the same machine.
std::string machine_to_json(const Machine& machine);

struct MachinePreset {
  std::string_view name;
  std::string_view summary;  // one line, for --help
  Machine (*make)();
};
std::span<const MachinePreset> machine_presets();

// A kind of device that machines are put together from, as "h100:8" is. Devices of one kind are linked as the vendor
// links them, those of different kinds over PCIe 4.
struct DeviceProduct {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view source;   // where its numbers are from
  Device (*make)(std::string name);
  Link link;
  double nvlink_bytes_per_second = 0;  // of one NVLink in one direction; 0: it has none
};
std::span<const DeviceProduct> device_products();

// The machine with links as `nvidia-smi topo -m` shows them between its first devices: GPU i is accelerator i. Throws
// InputError naming `where` if the text is no such table, or has more GPUs than the machine has accelerators.
Machine with_topology(const Machine& machine, const std::string& where, std::string_view text);

}  // namespace doppler
