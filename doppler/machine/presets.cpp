#include <fmt/format.h>

#include "doppler/machine.h"
#include "doppler/machine/kinds.h"

// Presets are starting points, not measurements: data-sheet peaks times the two fractions of kinds.h. Whoever
// needs a prediction within a few per cent writes a machine file with measured rates (docs/machines.md).
namespace doppler {
namespace {

constexpr double kTera = 1e12;

struct Peak {
  const char* dtype;
  double flops_per_second;
};

Device device(std::string name, std::string type, std::initializer_list<Peak> peaks, double memory_bytes_per_second) {
  Device result;
  result.name = std::move(name);
  result.type = std::move(type);
  for (const auto& [dtype, peak] : peaks) result.rates.push_back({"*", dtype, peak * kAchievedCompute});
  result.memory_bytes_per_second = memory_bytes_per_second * kAchievedMemory;
  return result;
}

Device gpu(DeviceId id, std::initializer_list<Peak> peaks, double memory_bytes_per_second, Bytes memory) {
  Device result = device(fmt::format("gpu{}", id), "gpu", peaks, memory_bytes_per_second);
  result.overhead = kKernelLaunch;
  result.memory = memory;
  return result;
}

// NVIDIA Tesla P100 PCIe 16 GB data sheet: 9.3 (f32), 18.7 (f16), 4.7 (f64) Tflop/s; HBM2 at 732 GB/s.
// dtype "*" is the f32 rate, for integers and whatever else a graph names.
Device p100(DeviceId id) {
  return gpu(id, {{"*", 9.3 * kTera}, {"f16", 18.7 * kTera}, {"f64", 4.7 * kTera}}, gigabytes_per_second(732),
             gibibytes(16));
}

// NVIDIA Tesla V100 SXM2 16 GB data sheet: 15.7 (f32), 125 (f16 on tensor cores), 7.8 (f64) Tflop/s; 900
// GB/s.
Device v100(DeviceId id) {
  return gpu(id, {{"*", 15.7 * kTera}, {"f16", 125 * kTera}, {"f64", 7.8 * kTera}}, gigabytes_per_second(900),
             gibibytes(16));
}

// NVIDIA A100 SXM4 80 GB data sheet: 19.5 (f32 without TF32), 312 (f16 and bf16 on tensor cores), 19.5 (f64
// on tensor cores) Tflop/s; HBM2e at 2039 GB/s.
Device a100(DeviceId id) {
  return gpu(id, {{"*", 19.5 * kTera}, {"f16", 312 * kTera}, {"bf16", 312 * kTera}, {"f64", 19.5 * kTera}},
             gigabytes_per_second(2039), gibibytes(80));
}

// One socket of an Intel Xeon Gold 6248: 20 cores, 1.6 GHz AVX-512 base, two 16-lane f32 FMAs per cycle
// = 2.05 Tflop/s; six channels of DDR4-2933 = 140.8 GB/s; a typical 192 GiB per socket. Half the rate in f64.
Device xeon(DeviceId id) {
  Device result = device(fmt::format("cpu{}", id), "cpu", {{"*", 2.05 * kTera}, {"f64", 1.02 * kTera}},
                         gigabytes_per_second(140.8));
  result.overhead = microseconds(1);  // waking a thread pool
  result.memory = gibibytes(192);
  return result;
}

// The desktop on which HSDAG was measured. Intel Core i9-12900K: eight cores at 3.2 GHz with two 8-lane f32 FMAs per
// cycle and eight at 2.4 GHz with one = 1.13 Tflop/s at base clocks; two channels of DDR5-4800 = 76.8 GB/s. UHD
// Graphics 770: 32 execution units of 16 flop per cycle at 1.55 GHz = 0.79 (f32) Tflop/s, twice that in f16, in the
// same memory. Data Center GPU Flex 170: 16 (f32), 128 (f16 on XMX) Tflop/s; 16 GB of GDDR6 at 576 GB/s.
Device hsdag_desktop(DeviceId id) {
  if (id == 2)
    return gpu(0, {{"*", 16 * kTera}, {"f16", 128 * kTera}, {"f64", 0.5 * kTera}}, gigabytes_per_second(576),
               gibibytes(16));
  Device result = id == 0
                      ? device("cpu0", "cpu", {{"*", 1.13 * kTera}, {"f64", 0.57 * kTera}}, gigabytes_per_second(76.8))
                      : device("igpu0", "igpu", {{"*", 0.79 * kTera}, {"f16", 1.59 * kTera}, {"f64", 0.05 * kTera}},
                               gigabytes_per_second(76.8));
  result.overhead = id == 0 ? microseconds(1) : kKernelLaunch;
  result.memory = gibibytes(32);
  return result;
}

// PCIe 3.0 x16: 15.75 GB/s in the standard, about 12 GB/s for large peer-to-peer copies; about 10 µs per
// copy.
constexpr Link kPcie{.latency = microseconds(10), .bytes_per_second = gigabytes_per_second(12)};
// A copy within the memory that a processor and its graphics share reads and writes every byte.
constexpr Link kSharedMemory{.latency = microseconds(2), .bytes_per_second = gigabytes_per_second(30)};
// Intel UPI at 10.4 GT/s: 20.8 GB/s per direction and link, two links between sockets.
constexpr Link kUpi{.latency = microseconds(1), .bytes_per_second = gigabytes_per_second(41.6)};

// NVLink 2: 25 GB/s per direction and link; about 0.9 of it is seen by copies.
constexpr Link nvlink2(unsigned links) {
  return {.latency = microseconds(8), .bytes_per_second = gigabytes_per_second(22.5 * links)};
}
// A100 behind NVSwitch: 300 GB/s per direction between any pair, 0.9 of it seen by copies.
constexpr Link kNvswitch{.latency = microseconds(8), .bytes_per_second = gigabytes_per_second(270)};

// NVLinks between the GPUs of one quad of a DGX-1 (V100), and from each GPU to its partner in the other quad:
// the hybrid cube mesh of NVIDIA's DGX-1 white paper. Every GPU has six; other pairs go through the host.
constexpr unsigned kQuadLinks[4][4] = {{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}};
constexpr unsigned kPartnerLinks[4] = {2, 2, 1, 1};

Link dgx1_link(DeviceId src, DeviceId dst) {
  if (src / 4 == dst / 4) return nvlink2(kQuadLinks[src % 4][dst % 4]);
  return src % 4 == dst % 4 ? nvlink2(kPartnerLinks[src % 4]) : kThroughHost;
}

Link two_socket_pcie_link(DeviceId src, DeviceId dst) { return src / 4 == dst / 4 ? kPcie : kThroughHost; }

template <typename MakeDevice, typename MakeLink>
Machine build(std::string name, DeviceId count, MakeDevice make_device, MakeLink make_link, Links model = Links::free) {
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < count; ++src) {
    devices.push_back(make_device(src));
    for (DeviceId dst = 0; dst < count; ++dst) links.push_back(src == dst ? Link() : make_link(src, dst));
  }
  return Machine(std::move(name), std::move(devices), std::move(links), model, kPresetJitter);
}

Link always_pcie(DeviceId, DeviceId) { return kPcie; }
Link always_nvswitch(DeviceId, DeviceId) { return kNvswitch; }
Link always_upi(DeviceId, DeviceId) { return kUpi; }
Link hsdag_desktop_link(DeviceId src, DeviceId dst) { return src == 2 || dst == 2 ? kPcie4 : kSharedMemory; }
Device xeon_then_v100(DeviceId id) { return id == 0 ? xeon(0) : v100(0); }

constexpr MachinePreset kPresets[] = {
    {"p100x4", "4 Tesla P100 16 GB on PCIe 3", [] { return build("p100x4", 4, p100, always_pcie); }},
    {"p100x8", "8 Tesla P100 16 GB, 4 per socket, PCIe 3",
     [] { return build("p100x8", 8, p100, two_socket_pcie_link); }},
    {"v100x4", "4 Tesla V100 16 GB, one quad of a DGX-1, NVLink 2", [] { return build("v100x4", 4, v100, dgx1_link); }},
    {"v100x8", "8 Tesla V100 16 GB, a DGX-1: unequal NVLinks, some pairs through the host",
     [] { return build("v100x8", 8, v100, dgx1_link); }},
    {"a100x8", "8 A100 80 GB behind NVSwitch", [] { return build("a100x8", 8, a100, always_nvswitch); }},
    {"cpu2", "2 Xeon Gold 6248 sockets of one memory",
     [] { return build("cpu2", 2, xeon, always_upi, Links::shared); }},
    {"cpu+gpu", "1 Xeon Gold 6248 socket and 1 Tesla V100 on PCIe 3",
     [] { return build("cpu+gpu", 2, xeon_then_v100, always_pcie); }},
    {"cpu+igpu+gpu", "1 Core i9-12900K, its UHD 770 graphics and 1 Flex 170 on PCIe 4",
     [] { return build("cpu+igpu+gpu", 3, hsdag_desktop, hsdag_desktop_link); }},
};

}  // namespace

std::span<const MachinePreset> machine_presets() { return kPresets; }

}  // namespace doppler
