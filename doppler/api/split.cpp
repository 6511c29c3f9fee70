#include "doppler/split.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/new_directory.h"
#include "doppler/problem/graph_files.h"
#include "doppler/program/onnx/split.h"

namespace doppler {
namespace {

constexpr const char* kManifest = "manifest.json";

// Whether all that is in a directory was written by split().
bool is_split(const std::string& directory, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), kManifest) == names.end()) return false;
  std::vector<std::string> ours = {kManifest};
  try {
    const std::string path = directory + "/" + kManifest;
    const AnyResult manifest = parse_result(path, read_file(path));
    const auto* split = std::get_if<SplitResult>(&manifest);
    if (split == nullptr) return false;
    for (const SplitResult::Part& part : split->parts) {
      ours.push_back(part.file);
      ours.push_back(part.file + ".data");
    }
  } catch (const InputError&) {
    return false;  // somebody else's manifest
  }
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return std::find(ours.begin(), ours.end(), name) != ours.end(); });
}

std::vector<SplitResult::Value> values_of(const std::vector<program::PartValue>& values,
                                          const std::vector<program::PartOfModel>& parts) {
  std::vector<SplitResult::Value> result;
  for (const program::PartValue& value : values)
    result.push_back({value.name,
                      value.dtype,
                      {value.shape.begin(), value.shape.end()},
                      value.bytes,
                      value.from == program::PartsOfModel::kModel ? "model" : parts[value.from].file});
  return result;
}

SplitResult result_of(const program::PartsOfModel& model, const LoadedProblem& loaded) {
  const Machine& machine = loaded.problem.machine();
  SplitResult result{.graph = loaded.file.path,
                     .machine = machine.name(),
                     .inputs = values_of(model.inputs, model.parts),
                     .outputs = values_of(model.outputs, model.parts),
                     .parts = {},
                     .unchecked = model.unchecked};
  for (const program::PartOfModel& part : model.parts)
    result.parts.push_back({part.file, machine.device(part.device).name, part.level, part.nodes, part.parameter_bytes,
                            values_of(part.inputs, model.parts), values_of(part.outputs, model.parts)});
  return result;
}

}  // namespace

void check_split_directory(const std::string& directory) { NewDirectory(directory, is_split); }

SplitResult split(const LoadedProblem& loaded, const Placement& placement, const std::string& directory,
                  const std::map<std::string, std::int64_t>& dims) {
  const GraphFile& file = loaded.file;
  if (!file.onnx)
    throw InputError(fmt::format("{}: found a graph of format '{}'; required an ONNX model", file.path, file.format));
  if (file.onnx->op_of_node.empty())
    throw InputError(
        fmt::format("{}: found a model cut by --shard; required one device per node, without it", file.path));
  check_size(file.path, placement, loaded.problem.op_count(), loaded.problem.device_count());
  std::vector<std::uint32_t> device_of_node;
  for (const OpId op : file.onnx->op_of_node) device_of_node.push_back(placement.device_of_op[op]);
  NewDirectory parts(directory, is_split);
  SplitResult result =
      result_of(program::split_onnx(file.path, file.onnx->content, dims, device_of_node, parts.path()), loaded);
  write_file_atomically(parts.path() + "/" + kManifest, to_json(result));
  parts.finish();
  return result;
}

}  // namespace doppler
