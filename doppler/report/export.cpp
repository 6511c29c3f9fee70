#include "doppler/report/export.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/parse_enum.h"
#include "doppler/problem/graph_files.h"
#include "doppler/problem/modules.h"
#include "doppler/program/onnx/multi_device.h"
#include "doppler/report/export_layers.h"

namespace doppler {
namespace {

nlohmann::ordered_json device_label(const Machine& machine, DeviceId device) {
  if (machine.device(device).type == "cpu") return "cpu";
  int number = 0;
  for (DeviceId other = 0; other < device; ++other) number += machine.device(other).type != "cpu";
  return number;
}

constexpr DeviceId kUnknown = std::numeric_limits<DeviceId>::max(), kSeveral = kUnknown - 1;

// The device of each module with all that is in it, or kSeveral.
std::vector<DeviceId> devices_of_modules(const Modules& modules, const std::vector<DeviceId>& device_of_op) {
  std::vector<DeviceId> devices(modules.size(), kUnknown);
  for (OpId op = 0; op < device_of_op.size(); ++op)
    for (const Modules::Id id : modules.path(op)) {
      if (devices[id] == kUnknown) devices[id] = device_of_op[op];
      if (devices[id] != device_of_op[op]) devices[id] = kSeveral;
    }
  return devices;
}

// The outermost modules that are on one device as a whole. A parameter of a module that is on several, such as the
// position embedding beside a list of blocks, is listed by its own name. Where no node is named by a module, nodes are
// listed. What holds no parameter and is in no module
// runs where its inputs are. No key is the beginning of another, as `device_map` wants it.
std::string device_map_of(const GraphFile& file, const Placement& placement, const Machine& machine) {
  const Modules modules(*file.graph, file.onnx->parameter_names());
  const std::vector<DeviceId> device_of_module = devices_of_modules(modules, placement.device_of_op);
  std::vector<std::vector<std::string>> parameters_of_op(file.graph->op_count());
  for (const program::OnnxParameter& parameter : file.onnx->parameters)
    parameters_of_op[parameter.readers.front()].push_back(parameter.name);
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (OpId op = 0; op < file.graph->op_count(); ++op) {
    const DeviceId device = placement.device_of_op[op];
    const std::vector<Modules::Id> path = modules.path(op);
    const auto whole =
        std::find_if(path.begin(), path.end(), [&](Modules::Id id) { return device_of_module[id] != kSeveral; });
    if (modules.empty()) {
      map[file.graph->name(op)] = device_label(machine, device);
      continue;
    }
    if (whole != path.end()) {
      map[modules[*whole].name] = device_label(machine, device);
      continue;
    }
    if (!path.empty() && (!modules[path.back()].has_modules || modules.indivisible(path.back())))
      throw InputError(
          fmt::format("--export device-map: module '{}' is on several devices; required one, as --granularity module "
                      "makes it",
                      modules[path.back()].name));
    for (const std::string& name : parameters_of_op[op])
      if (name.find(':') == std::string::npos) map[name] = device_label(machine, device);
  }
  return map.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string_view to_string(ExportFormat format) {
  constexpr std::string_view kNames[] = {"onnx", "device-map", "ort", "llama-cpp", "onnx-multi-device", "layers"};
  return kNames[static_cast<int>(format)];
}
ExportFormat parse_export_format(std::string_view text) {
  return parse_enum(text, "--export",
                    std::array{ExportFormat::onnx, ExportFormat::device_map, ExportFormat::ort, ExportFormat::llama_cpp,
                               ExportFormat::onnx_multi_device, ExportFormat::layers});
}
std::string export_help() {
  return "onnx (the model with a device per node), device-map (modules to devices, as Hugging Face takes them), ort "
         "(the "
         "model annotated for ONNX Runtime), onnx-multi-device (the model with device configurations of IR 11), "
         "llama-cpp (its flags), layers (strings of vLLM, Megatron and torchtitan)";
}
Granularity granularity_for(ExportFormat format) {
  switch (format) {
    case ExportFormat::onnx:
    case ExportFormat::ort:
    case ExportFormat::onnx_multi_device:
      return Granularity::op;
    case ExportFormat::device_map:
      return Granularity::module;
    case ExportFormat::llama_cpp:
    case ExportFormat::layers:
      return Granularity::layer;
  }
  throw InternalError("unknown format");
}

std::string layer_assignment_settings(const Placement& placement, const Machine& machine) {
  std::vector<bool> used(machine.device_count(), false);
  for (const DeviceId device : placement.device_of_op) used[device] = true;
  std::string text;
  for (DeviceId id = 0; id < machine.device_count(); ++id) {
    if (!used[id]) continue;
    const nlohmann::ordered_json label = device_label(machine, id);
    text += fmt::format("{}{}(={})", text.empty() ? "" : "; ",
                        label.is_string() ? "cpu" : fmt::format("gpu:{}", label.get<int>()), machine.device(id).name);
  }
  return text;
}

void check_export(ExportFormat format, const GraphFile& file) {
  if (!file.onnx)
    throw InputError(fmt::format("--export {}: found a graph of format '{}'; required an ONNX model", to_string(format),
                                 file.format));
  if (file.onnx->op_of_node.empty())
    throw InputError(fmt::format("--export {}: found a model cut by --shard; required one device per node, without it",
                                 to_string(format)));
}

std::string export_placement(ExportFormat format, const GraphFile& file, const Placement& placement,
                             const Machine& machine) {
  check_export(format, file);
  if (format == ExportFormat::device_map) return device_map_of(file, placement, machine);
  if (format == ExportFormat::llama_cpp) return llama_cpp_flags(layer_partition(file, placement, machine), machine);
  if (format == ExportFormat::layers) return pipeline_strings(layer_partition(file, placement, machine), machine);
  std::vector<DeviceId> devices;
  for (const OpId op : file.onnx->op_of_node) devices.push_back(placement.device_of_op[op]);
  if (format == ExportFormat::onnx_multi_device) {
    std::vector<std::string> all;
    for (DeviceId id = 0; id < machine.device_count(); ++id) all.push_back(machine.device(id).name);
    return program::configure_devices(file.path, file.onnx->content, "doppler", all, devices);
  }
  std::vector<std::string> names;
  for (const DeviceId device : devices) names.push_back(machine.device(device).name);
  if (format == ExportFormat::onnx) return program::annotate_onnx(file.onnx->content, names);
  return program::annotate_onnx(file.onnx->content, names, "layer_ann",
                                {{"session.layer_assignment_settings", layer_assignment_settings(placement, machine)}});
}

}  // namespace doppler
