#include "doppler/report/export.h"

#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/parse_enum.h"
#include "doppler/problem/graph_files.h"

namespace doppler {
namespace {

// "/layer1/layer1.0/conv1/Conv" is op Conv of module layer1.0.conv1: PyTorch repeats the name of a container before
// the number of its child. Modules from the outermost inwards, e.g. layer1, layer1.0, layer1.0.conv1.
std::vector<std::string> modules_of(const std::string& node) {
  std::vector<std::string> parts, modules;
  for (std::size_t begin = 0; begin <= node.size();) {
    const std::size_t end = std::min(node.find('/', begin), node.size());
    if (end > begin) parts.push_back(node.substr(begin, end - begin));
    begin = end + 1;
  }
  std::string path, previous;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const bool repeats = !previous.empty() && parts[i].starts_with(previous + ".");
    if (repeats) path.resize(path.size() - previous.size());
    if (!repeats && !path.empty()) path += '.';
    path += parts[i];
    previous = parts[i];
    modules.push_back(path);
  }
  return modules;
}

nlohmann::ordered_json device_label(const Machine& machine, DeviceId device) {
  if (machine.device(device).type == "cpu") return "cpu";
  int number = 0;
  for (DeviceId other = 0; other < device; ++other) number += machine.device(other).type != "cpu";
  return number;
}

// Every module that is on one device as a whole, then nodes by name.
std::string device_map(const std::vector<std::string>& node_names, const std::vector<DeviceId>& device_of_node,
                       const Machine& machine) {
  std::map<std::string, std::set<DeviceId>> devices_of_module;
  for (std::size_t i = 0; i < node_names.size(); ++i)
    for (const std::string& module : modules_of(node_names[i])) devices_of_module[module].insert(device_of_node[i]);
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < node_names.size(); ++i) {
    std::string key = node_names[i];
    for (const std::string& module : modules_of(node_names[i]))
      if (devices_of_module[module].size() == 1) {
        key = module;
        break;
      }
    const nlohmann::ordered_json device = device_label(machine, device_of_node[i]);
    if (map.contains(key) && map[key] != device)
      throw InputError(
          fmt::format("--export device-map: several nodes are called '{}' and are on different devices; "
                      "required different names, or --export onnx",
                      key));
    map[key] = device;
  }
  return map.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string_view to_string(ExportFormat format) { return format == ExportFormat::onnx ? "onnx" : "device-map"; }
ExportFormat parse_export_format(std::string_view text) {
  return parse_enum(text, "--export", std::array{ExportFormat::onnx, ExportFormat::device_map});
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
  std::vector<DeviceId> devices;
  for (const OpId op : file.onnx->op_of_node) devices.push_back(placement.device_of_op[op]);
  if (format == ExportFormat::device_map)
    return device_map(program::onnx_node_names(file.onnx->content), devices, machine);
  std::vector<std::string> names;
  for (const DeviceId device : devices) names.push_back(machine.device(device).name);
  return program::annotate_onnx(file.onnx->content, names);
}

}  // namespace doppler
