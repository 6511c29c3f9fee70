#pragma once

#include "doppler/app/flags/options.h"
#include "doppler/load.h"
#include "doppler/results.h"

namespace doppler {

// What a verb does with the problems that it loads.
enum class Purpose : std::uint8_t { simulation, execution };

// The loader's options as the flags say them. Throws InputError.
LoadOptions load_options(const Options& options, Purpose purpose = Purpose::simulation);
// --machine, with --jitter in place of its own.
Machine machine_from(const Options& options);
// A graph file, cut for the machine if there is one. Reports the reader's warnings unless --quiet.
GraphFile load_graph(const std::string& path, const Machine* machine, const Options& options,
                     Purpose purpose = Purpose::simulation);
// The same as a problem, on the machine that --machine names or on a given one.
LoadedProblem load(const std::string& path, const Options& options, Purpose purpose = Purpose::simulation);
LoadedProblem load(const std::string& path, const Machine& machine, const Options& options,
                   Purpose purpose = Purpose::simulation);

// Says what the reader of the file warns of.
void warn(const GraphFile& file);

std::string show_time(const LoadedProblem& loaded, Seconds value);

}  // namespace doppler
