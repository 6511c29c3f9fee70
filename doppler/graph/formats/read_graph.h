#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doppler/graph.h"

namespace doppler {

struct ReadOptions {
  // Fix the known damage of the published graphs instead of only warning about it.
  bool repair = false;
};

struct LoadedGraph {
  Graph graph;
  std::string format;                 // "native", "published", "stg", "wfcommons", "dnn-partitioning"
  std::vector<std::string> warnings;  // what the user should know: "where: …", one line each
  // The program that the graph was lowered from, as JSON text; only native files may have one. program/program_json.h
  // reads it.
  std::string program = {};
};

// Reads a graph in any format of docs/formats.md. The format is chosen by content, never by file name; `path`
// "-" is standard input. Throws InputError.
LoadedGraph read_graph(const std::string& path, const ReadOptions& options = {});
// The same for text that is already in memory; `where` starts every error text.
LoadedGraph parse_graph(const std::string& where, std::string_view content, const ReadOptions& options = {});

}  // namespace doppler
