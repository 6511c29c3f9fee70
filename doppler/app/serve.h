#pragma once

#include <string>
#include <vector>

#include "doppler/app/flags/executor.h"

namespace CLI {
class App;
}  // namespace CLI

namespace doppler {

// `run --learn`: the graph is served again and again, and its placement improves.
struct ServeOptions {
  bool learn = false;
  unsigned runs = 200;
  double explore = 0.1, max_slowdown = 1.2;
  std::string search_time = "200ms", checkpoint;
  std::string log, plot, placement, state;  // files to write; those that are empty are not written
  std::vector<std::string> drift;           // as parse_drift() reads them, of emulated devices
};
void add_serve_flags(CLI::App& verb, ServeOptions& options);

// Serves the graph as the flags say. Ctrl-C ends it early and keeps what was learned. Throws InputError if a flag is
// wrong.
void serve(const LoadedProblem& loaded, const ExecutorFlags& flags, const Placement& start, const ServeOptions& serving,
           const Options& options);

}  // namespace doppler
