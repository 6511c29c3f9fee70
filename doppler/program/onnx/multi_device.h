#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace doppler::program {

// Returns the model with the multi-device annotations of ONNX's IR version 11: one configuration of the model that names
// the devices, and for every node of the main graph the device of each of its tensors and its pipeline stage, which is
// the level that split_onnx() gives it. Nodes that depend on parameters alone have no stage. `device_of_node` is in the
// order of the file; annotations of an earlier export of that name are replaced.
std::string configure_devices(const std::string& where, std::string_view content, const std::string& configuration,
                              const std::vector<std::string>& devices,
                              const std::vector<std::uint32_t>& device_of_node);

}  // namespace doppler::program
