#pragma once

#include "doppler/graph/formats/read_graph.h"

namespace doppler {

// Our own format: everything a Graph knows, see docs/formats.md.
LoadedGraph parse_native_json(const std::string& where, std::string_view content);
// Reading it back gives an equal graph, and writing that gives the same bytes. `program` is LoadedGraph::program.
std::string graph_to_json(const Graph& graph, std::string_view program = {});

}  // namespace doppler
