#include "doppler/report/export_layers.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/problem/graph_files.h"
#include "doppler/problem/modules.h"

namespace doppler {
namespace {

// "layers" and 3 of "layers.3"; none if the name does not end in a number.
std::optional<std::pair<std::string, std::size_t>> block_of(const std::string& module) {
  const std::size_t dot = module.rfind('.');
  if (dot == std::string::npos || dot + 1 == module.size() || module.size() - dot > 7) return std::nullopt;
  if (module.find_first_not_of("0123456789", dot + 1) != std::string::npos) return std::nullopt;
  return std::pair(module.substr(0, dot), static_cast<std::size_t>(std::stoul(module.substr(dot + 1))));
}

// The list with the most blocks; of equals the first by name.
std::string longest_list(const Modules& modules) {
  std::map<std::string, std::size_t> blocks;
  for (Modules::Id id = 0; id < modules.size(); ++id)
    if (const auto block = block_of(modules[id].name)) ++blocks[block->first];
  std::string longest;
  for (const auto& [list, count] : blocks)
    if (count > 1 && (longest.empty() || count > blocks[longest])) longest = list;
  return longest;
}

int accelerator_number(const Machine& machine, DeviceId device) {
  int number = 0;
  for (DeviceId other = 0; other < device; ++other) number += machine.device(other).type != "cpu";
  return number;
}

// Consecutive blocks of one device.
struct Stage {
  DeviceId device = 0;
  std::size_t begin = 0, end = 0;
};
std::vector<Stage> stages_of(const LayerPartition& partition) {
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < partition.device_of.size(); ++i) {
    if (stages.empty() || stages.back().device != partition.device_of[i])
      stages.push_back({partition.device_of[i], i, i});
    stages.back().end = i + 1;
  }
  return stages;
}

}  // namespace

LayerPartition layer_partition(const GraphFile& file, const Placement& placement, const Machine& machine) {
  const Modules modules(*file.graph, file.onnx ? file.onnx->parameter_names() : std::vector<std::string>());
  LayerPartition result;
  result.list = longest_list(modules);
  if (result.list.empty())
    throw InputError(
        fmt::format("{}: no list of layers, as layers.0, layers.1 are; required one for this export", file.path));
  std::map<std::size_t, DeviceId> device_of_block;
  std::optional<DeviceId> first, last;
  for (const OpId op : file.graph->topological_order()) {
    const DeviceId device = placement.device_of_op[op];
    const std::vector<Modules::Id> path = modules.path(op);
    std::optional<std::size_t> block;
    for (const Modules::Id id : path)
      if (const auto found = block_of(modules[id].name); found && found->first == result.list) block = found->second;
    if (block) {
      const auto [entry, added] = device_of_block.try_emplace(*block, device);
      if (!added && entry->second != device)
        throw InputError(
            fmt::format("--export: layer '{}.{}' is on devices '{}' and '{}'; required one, as --granularity "
                        "layer makes it",
                        result.list, *block, machine.device(entry->second).name, machine.device(device).name));
      continue;
    }
    if (path.empty()) continue;
    std::vector<std::string>& outside = device_of_block.empty() ? result.before : result.after;
    const std::string& name = modules[path.front()].name;
    if (!result.list.starts_with(name + ".") && std::find(outside.begin(), outside.end(), name) == outside.end())
      outside.push_back(name);
    if (device_of_block.empty() && !first) first = device;
    if (!device_of_block.empty()) last = device;
  }
  for (const auto& [block, device] : device_of_block) result.device_of.push_back(device);
  result.first = first.value_or(result.device_of.front());
  result.last = last.value_or(result.device_of.back());
  return result;
}

std::string llama_cpp_flags(const LayerPartition& partition, const Machine& machine) {
  const auto buffer = [&](DeviceId device) {
    if (machine.device(device).type == "cpu") return std::string("CPU");
    return fmt::format("CUDA{}", accelerator_number(machine, device));
  };
  std::map<DeviceId, std::vector<std::size_t>> blocks;
  for (std::size_t i = 0; i < partition.device_of.size(); ++i) blocks[partition.device_of[i]].push_back(i);
  std::string text = fmt::format("-ot \"token_embd={}\"\n", buffer(partition.first));
  for (const auto& [device, numbers] : blocks)
    text += fmt::format("-ot \"blk\\.({})\\.={}\"\n", fmt::join(numbers, "|"), buffer(device));
  text += fmt::format("-ot \"output={}\"\n", buffer(partition.last));
  // -ts gives consecutive layers to the devices in their order, and knows accelerators alone.
  const std::vector<Stage> stages = stages_of(partition);
  const auto in_order = [](const Stage& a, const Stage& b) { return a.device < b.device; };
  const auto accelerated = [&](const Stage& stage) { return machine.device(stage.device).type != "cpu"; };
  if (!std::is_sorted(stages.begin(), stages.end(), in_order) || stages.size() != blocks.size() ||
      !std::all_of(stages.begin(), stages.end(), accelerated))
    return text;
  std::vector<std::size_t> share;
  for (DeviceId device = 0; device <= stages.back().device; ++device)
    if (machine.device(device).type != "cpu") share.push_back(blocks.contains(device) ? blocks[device].size() : 0);
  return text + fmt::format("-sm layer -ts {}\n", fmt::join(share, ","));
}

std::string pipeline_strings(const LayerPartition& partition, const Machine& machine) {
  const std::vector<Stage> stages = stages_of(partition);
  for (std::size_t i = 0; i < stages.size(); ++i)
    for (std::size_t j = i + 1; j < stages.size(); ++j)
      if (stages[i].device == stages[j].device)
        throw InputError(fmt::format(
            "--export layers: device '{}' has '{}.{}' and '{}.{}' and not all between them; "
            "required consecutive layers on every device",
            machine.device(stages[i].device).name, partition.list, stages[i].begin, partition.list, stages[j].begin));
  std::vector<std::size_t> counts;
  std::string megatron;
  nlohmann::ordered_json parts = nlohmann::ordered_json::array(), devices = nlohmann::ordered_json::array();
  for (const Stage& stage : stages) {
    counts.push_back(stage.end - stage.begin);
    megatron += fmt::format("{}{}{}", megatron.empty() ? "E" : "|", std::string(stage.end - stage.begin, 't'),
                            stage.end == partition.device_of.size() ? "L" : "");
    nlohmann::ordered_json part = nlohmann::ordered_json::array();
    if (stage.begin == 0)
      for (const std::string& name : partition.before) part.push_back(name);
    for (std::size_t i = stage.begin; i < stage.end; ++i) part.push_back(fmt::format("{}.{}", partition.list, i));
    if (stage.end == partition.device_of.size())
      for (const std::string& name : partition.after) part.push_back(name);
    parts.push_back(std::move(part));
    devices.push_back(machine.device(stage.device).name);
  }
  const nlohmann::ordered_json file = {{"layers", partition.device_of.size()},
                                       {"devices", devices},
                                       {"vllm", fmt::format("VLLM_PP_LAYER_PARTITION={}", fmt::join(counts, ","))},
                                       {"megatron", fmt::format("--pipeline-model-parallel-layout {}", megatron)},
                                       {"torchtitan", {{"module_fqns_per_model_part", parts}}}};
  return file.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace doppler
