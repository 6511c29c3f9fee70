#pragma once

// A model in parts, one ONNX model per device and stage, for runtimes that take one device per model.
//
//   doppler::SplitResult parts = doppler::split(loaded, placement, "parts");
//   for (const auto& part : parts.parts) run(part.file, part.device);    // in this order, handing on values by name
//
// Limits. The placement is of a model that is not cut (--shard). A part runs when everything that it receives is there,
// so that the parts of one device wait longer than its ops would.

#include <map>
#include <string>

#include "doppler/load.h"
#include "doppler/placement.h"
#include "doppler/results.h"

namespace doppler {

// Throws InputError if the directory exists and holds anything but an earlier split.
void check_split_directory(const std::string& directory);

// Writes the parts, and manifest.json, which is the result as JSON, to a directory; it appears as a whole. `dims` are the
// sizes that the model was loaded with. Throws InputError if the file is no ONNX model or was cut, if the directory
// holds anything but an earlier split, or if it cannot be written.
SplitResult split(const LoadedProblem& loaded, const Placement& placement, const std::string& directory,
                  const std::map<std::string, std::int64_t>& dims = {});

}  // namespace doppler
