#pragma once

#include <optional>
#include <string>

#include "doppler/app/options.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/machine/machine.h"
#include "doppler/problem/placement.h"
#include "doppler/program/onnx/import.h"

namespace doppler {

// A graph, and what an ONNX model adds to it.
struct LoadedModel : LoadedGraph {
  std::optional<program::OnnxTotals> totals = std::nullopt;  // nothing for other formats
  std::vector<OpId> op_of_node = {};                         // as in ImportedModel
  std::string content = {};                                  // the file, for --export
};

// --dim, and blocks for a machine; 0 parts: ops stay whole; an empty machine: the default speeds. Throws InputError.
program::OnnxOptions onnx_options(const std::vector<std::string>& dims, std::uint32_t parts,
                                  const std::string& machine);
LoadedModel load_model(const std::string& path, std::string content, const Options& options);

// Throws InputError if the graph is no ONNX model, or is cut.
void check_export(const std::string& format, const Options& options, const LoadedModel& model);
// The text of --export: the model with devices in its metadata, or a map from modules to devices.
std::string export_placement(const std::string& format, const LoadedModel& model, const Placement& placement,
                             const Machine& machine);
// {"layers.0": 0, …}: every module that is on one device as a whole, then nodes by name. Accelerators are numbered as
// in CUDA, a processor is "cpu".
std::string device_map(const std::vector<std::string>& node_names, const std::vector<DeviceId>& device_of_node,
                       const Machine& machine);

}  // namespace doppler
