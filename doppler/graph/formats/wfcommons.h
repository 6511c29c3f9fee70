#pragma once

#include "doppler/graph/formats/read_graph.h"

namespace doppler {

// A scientific workflow of the WfCommons project, schema 1.4 to 1.6. A file that a task writes is a tensor,
// and the tasks that read it are its consumers; a dependency without a shared file is a tensor of 0 bytes.
LoadedGraph parse_wfcommons(const std::string& where, std::string_view content);

}  // namespace doppler
