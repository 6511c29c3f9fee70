#pragma once

#include <string>

#include "doppler/app/options.h"
#include "doppler/problem/load.h"

namespace doppler {

// Throws InputError if the graph is no ONNX model, or is cut.
void check_export(const std::string& format, const Options& options, const GraphFile& file);
// The text of --export: the model with devices in its metadata, or a map from modules to devices.
std::string export_placement(const std::string& format, const GraphFile& file, const Placement& placement,
                             const Machine& machine);
// {"layers.0": 0, …}: every module that is on one device as a whole, then nodes by name. Accelerators are numbered as
// in CUDA, a processor is "cpu".
std::string device_map(const std::vector<std::string>& node_names, const std::vector<DeviceId>& device_of_node,
                       const Machine& machine);

}  // namespace doppler
