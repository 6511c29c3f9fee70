#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doppler/load.h"

namespace doppler {

// One measurement of a file: of an op or of a whole module.
struct TimeRow {
  std::string name;
  Seconds seconds = 0;
  std::string type;  // of the device; empty: the file does not say
};
// Reads CSV (name,seconds[,device type]) or a trace for chrome://tracing: a profile of ONNX Runtime (events that end in
// _kernel_time, their execution provider is the type), of PyTorch, or a run of ours. Throws InputError with the line of
// what is wrong.
std::vector<TimeRow> parse_times(const std::string& where, std::string_view text);

// Gives the file's graph the times of these files, for devices of their type (unless they say, that of the machine's
// first device). A name is that of an op, else of a module, whose time is shared out among its ops as the machine models
// them; several rows of one name are averaged. Ops without a measurement take their modelled time times the median of
// measured over modelled times of their kind, or of all. Adds a line per file and type to the warnings that says how
// much of the ops and of the time was measured, what was guessed, and which names matched nothing. Throws InputError if
// no name matches.
void apply_times(GraphFile& file, const Machine& machine, const std::vector<std::string>& paths);

}  // namespace doppler
