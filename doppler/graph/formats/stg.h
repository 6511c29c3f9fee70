#pragma once

#include "doppler/graph/formats/read_graph.h"

namespace doppler {

// A Standard Task Graph (Tobita and Kasahara). Times are unit-less, transfers cost nothing, an op is named by
// its task number. The zero-time dummy tasks stay, so that ops keep the file's order.
LoadedGraph parse_stg(const std::string& where, std::string_view content);

}  // namespace doppler
