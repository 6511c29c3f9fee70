#pragma once

#include <string>

#include "doppler/load.h"
#include "doppler/placement.h"

namespace doppler {

enum class ExportFormat : std::uint8_t {
  onnx,        // the model with a device in the metadata of every node
  device_map,  // modules to devices
};
std::string_view to_string(ExportFormat format);
ExportFormat parse_export_format(std::string_view text);  // throws InputError

// Throws InputError if the file is no ONNX model, or was cut: then nodes have no device of their own.
void check_export(ExportFormat format, const GraphFile& file);
// A placement of the file's graph as other programs read it.
std::string export_placement(ExportFormat format, const GraphFile& file, const Placement& placement,
                             const Machine& machine);

}  // namespace doppler
