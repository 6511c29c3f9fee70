#pragma once

#include <string>

#include "doppler/load.h"
#include "doppler/placement.h"

namespace doppler {

enum class ExportFormat : std::uint8_t {
  onnx,               // the model with a device in the metadata of every node
  device_map,         // modules to devices
  ort,                // the model with layer_ann in the metadata of every node, and ONNX Runtime's setting that uses it
  llama_cpp,          // flags of llama.cpp
  onnx_multi_device,  // the model with the device configurations of ONNX's IR version 11
  layers,             // consecutive layers as vLLM, Megatron and torchtitan take them
};
std::string_view to_string(ExportFormat format);
ExportFormat parse_export_format(std::string_view text);  // throws InputError

std::string export_help();  // what each is, for --help
// How coarse a placement has to be for the format, unless somebody says otherwise.
Granularity granularity_for(ExportFormat format);

// Throws InputError if the file is no ONNX model, or was cut: then nodes have no device of their own.
void check_export(ExportFormat format, const GraphFile& file);
// A placement of the file's graph as other programs read it.
std::string export_placement(ExportFormat format, const GraphFile& file, const Placement& placement,
                             const Machine& machine);

// The value of session.layer_assignment_settings that goes with ExportFormat::ort: the devices that are used, each with
// its annotation.
std::string layer_assignment_settings(const Placement& placement, const Machine& machine);

}  // namespace doppler
