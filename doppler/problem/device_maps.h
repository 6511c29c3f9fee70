#pragma once

#include <string>
#include <string_view>

#include "doppler/load.h"
#include "doppler/placement.h"

namespace doppler {

// Reads a placement of a file's graph in any of the forms that people have one in:
//   a placement file of ours;
//   a JSON object of names and devices, {"layers.0": 0, "lm_head": "cpu"}, as `device_map` of Hugging Face is: a name
//     is that of an op or a module, with everything in it, "" is all, and the longest that fits counts;
//   the value of ONNX Runtime's session.layer_assignment_settings, "gpu:0(layers.0, layers.1); cpu(=head)": a name
//     means every module or op that begins with it, or with '=' exactly that one.
// A number is that of an accelerator, as CUDA counts them; "cpu", "cuda:1", "gpu:1" and the machine's own names work
// too. What is in no module and has no name in the map goes where its inputs come from. Throws InputError listing
// names that the graph does not have, with what they may have meant, and those that the map does not have.
PlacementFile parse_any_placement(const std::string& where, std::string_view text, const GraphFile& file,
                                  const Machine& machine);

}  // namespace doppler
