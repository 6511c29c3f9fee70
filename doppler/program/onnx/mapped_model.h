#pragma once

#include <map>
#include <string>
#include <string_view>

#include "doppler/program/onnx/proto.h"

// Models whose file is mapped: weights are most of it, and need not be in memory twice.

namespace doppler::program {

// Parses a mapped file, whose pages are forgotten once they are read. Returns false if it is no model.
bool parse_mapped(std::string_view content, onnx::ModelProto& model);
// Returns where the bytes of large initialisers of the main graph lie, by name. Stops where the file is damaged.
std::map<std::string, std::string_view> find_raw_data(std::string_view content);

}  // namespace doppler::program
