#include "doppler/machine/kinds.h"

#include <charconv>
#include <map>

#include "doppler/base/error.h"
#include "doppler/base/similar.h"

// Dense peaks without sparsity. dtype "*" is the f32 rate of ordinary cores, without TF32, for integers and whatever
// else a graph names. Memory is counted in GiB, as the tools of the vendors do.
namespace doppler {
namespace {

constexpr double kTeraflops = 1e12;

struct DataSheet {
  double f32, f16, bf16, f64;  // Tflop/s; 0: no rate of its own
  double memory_gigabytes_per_second;
  Bytes memory_gibibytes;
};

Device from_data_sheet(std::string name, const DataSheet& sheet, std::string type = "gpu") {
  Device device;
  device.name = std::move(name);
  device.type = std::move(type);
  const auto add = [&](const char* dtype, double peak) {
    if (peak > 0) device.rates.push_back({"*", dtype, peak * kTeraflops * kAchievedCompute});
  };
  add("*", sheet.f32);
  add("f16", sheet.f16);
  add("bf16", sheet.bf16);
  add("f64", sheet.f64);
  device.memory_bytes_per_second = gigabytes_per_second(sheet.memory_gigabytes_per_second) * kAchievedMemory;
  device.memory = gibibytes(sheet.memory_gibibytes);
  device.overhead = device.type == "cpu" ? microseconds(1) : kKernelLaunch;
  return device;
}

// Copies see about 0.9 of what a link has in one direction.
constexpr Link fabric(double gigabytes_per_second_per_direction) {
  return {.latency = microseconds(8),
          .bytes_per_second = gigabytes_per_second(0.9 * gigabytes_per_second_per_direction)};
}

constexpr double kNvlink2To4 = 25e9, kNvlink5 = 50e9;  // of one link in one direction

constexpr DeviceProduct kKinds[] = {
    {"b200", "B200 180 GB, NVLink 5 behind NVSwitch", "NVIDIA DGX B200 data sheet; f16 is 2250 Tflop/s dense",
     [](std::string name) {
       return from_data_sheet(std::move(name), {75, 2250, 2250, 37, 8000, 180});
     },
     fabric(900), kNvlink5},
    {"h200", "H200 SXM 141 GB, NVLink 4 behind NVSwitch", "NVIDIA H200 data sheet",
     [](std::string name) {
       return from_data_sheet(std::move(name), {67, 989, 989, 67, 4800, 141});
     },
     fabric(450), kNvlink2To4},
    {"h100", "H100 SXM 80 GB, NVLink 4 behind NVSwitch", "NVIDIA H100 data sheet",
     [](std::string name) {
       return from_data_sheet(std::move(name), {67, 989, 989, 67, 3350, 80});
     },
     fabric(450), kNvlink2To4},
    {"a100", "A100 SXM 80 GB, NVLink 3 behind NVSwitch", "NVIDIA A100 data sheet",
     [](std::string name) {
       return from_data_sheet(std::move(name), {19.5, 312, 312, 19.5, 2039, 80});
     },
     fabric(300), kNvlink2To4},
    {"l40s", "L40S 48 GB on PCIe 4", "NVIDIA L40S data sheet",
     [](std::string name) {
       return from_data_sheet(std::move(name), {91.6, 362, 362, 1.4, 864, 48});
     },
     kPcie4},
    {"l4", "L4 24 GB on PCIe 4", "NVIDIA L4 data sheet",
     [](std::string name) {
       return from_data_sheet(std::move(name), {30.3, 121, 121, 0.5, 300, 24});
     },
     kPcie4},
    {"t4",
     "Tesla T4 16 GB on PCIe 3",
     "NVIDIA T4 data sheet; bf16 is done as f32",
     [](std::string name) {
       return from_data_sheet(std::move(name), {8.1, 65, 0, 0.25, 320, 16});
     },
     {.latency = microseconds(10), .bytes_per_second = gigabytes_per_second(12)}},
    {"rtx4090", "GeForce RTX 4090 24 GB on PCIe 4", "NVIDIA Ada white paper; f16 with f32 sums",
     [](std::string name) {
       return from_data_sheet(std::move(name), {82.6, 165, 165, 1.3, 1008, 24});
     },
     kPcie4},
    {"rtx3090", "GeForce RTX 3090 24 GB on PCIe 4", "NVIDIA Ampere GA102 white paper; f16 with f32 sums",
     [](std::string name) {
       return from_data_sheet(std::move(name), {35.6, 71, 71, 0.56, 936, 24});
     },
     kPcie4, kNvlink2To4},
    {"rtx3060", "GeForce RTX 3060 12 GB on PCIe 4", "NVIDIA GeForce specifications; f16 with f32 sums",
     [](std::string name) {
       return from_data_sheet(std::move(name), {12.7, 25.5, 25.5, 0.2, 360, 12});
     },
     kPcie4},
    {"mi300x", "Instinct MI300X 192 GB, Infinity Fabric between every pair", "AMD Instinct MI300X data sheet",
     [](std::string name) {
       return from_data_sheet(std::move(name), {163.4, 1307, 1307, 81.7, 5300, 192});
     },
     fabric(64)},
    {"tpu-v5e", "TPU v5e chip 16 GB, links of a torus taken as direct",
     "Google Cloud TPU v5e documentation; f32 as six bf16 products",
     [](std::string name) {
       return from_data_sheet(std::move(name), {33, 197, 197, 0, 819, 16}, "tpu");
     },
     fabric(50)},
    {"v100", "Tesla V100 SXM2 32 GB, NVLink 2", "NVIDIA V100 data sheet; bf16 is done as f32",
     [](std::string name) {
       return from_data_sheet(std::move(name), {15.7, 125, 0, 7.8, 900, 32});
     },
     fabric(50), kNvlink2To4},
    {"cpu",
     "Xeon Gold 6248 socket, 192 GB",
     "Intel ARK: 20 cores at 1.6 GHz AVX-512 base, six channels of DDR4-2933",
     [](std::string name) {
       return from_data_sheet(std::move(name), {2.05, 0, 0, 1.02, 140.8, 192}, "cpu");
     },
     {.latency = microseconds(1), .bytes_per_second = gigabytes_per_second(41.6)}},
};

const DeviceProduct& kind_called(const std::string& machine, const std::string& name) {
  std::vector<std::string> names;
  for (const DeviceProduct& kind : kKinds) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  throw InputError(fmt::format("machine: found '{}' in '{}'; required a kind of device: {}{}", name, machine, all,
                               did_you_mean(name, names)));
}

}  // namespace

std::span<const DeviceProduct> device_products() { return kKinds; }

Machine machine_of_kinds(const std::string& name) {
  std::vector<Device> devices;
  std::vector<const DeviceProduct*> kinds;
  std::map<std::string, unsigned> of_type;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('+', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = part.find(':');
    const DeviceProduct& kind = kind_called(name, part.substr(0, colon));
    unsigned count = 1;
    if (colon != std::string::npos) {
      const char *first = part.data() + colon + 1, *last = part.data() + part.size();
      if (std::from_chars(first, last, count) != std::from_chars_result{last, {}} || count == 0 ||
          count + devices.size() > kMostDevices)
        throw InputError(
            fmt::format("machine: found '{}' in '{}'; required KIND:N with N from 1 to {}", part, name, kMostDevices));
    }
    for (unsigned i = 0; i < count; ++i) {
      Device device = kind.make({});
      device.name = fmt::format("{}{}", device.type, of_type[device.type]++);
      devices.push_back(std::move(device));
      kinds.push_back(&kind);
    }
  }
  std::vector<Link> links;
  for (std::size_t src = 0; src < devices.size(); ++src)
    for (std::size_t dst = 0; dst < devices.size(); ++dst)
      links.push_back(kinds[src] == kinds[dst] ? kinds[src]->link : kPcie4);
  return Machine(name, std::move(devices), std::move(links), Links::free, kPresetJitter);
}

}  // namespace doppler
