#pragma once

#include <string>

#include "doppler/app/flags/options.h"
#include "doppler/place.h"

namespace CLI {
class App;
}  // namespace CLI

namespace doppler {

// Which policy the learned methods and `auto` use.
struct PolicyOptions {
  std::string checkpoint;      // A policy file or the directory of a training; the shipped one if it is empty.
  std::string train;           // How long it is trained on the graph first; zero-shot if it is empty.
  std::uint32_t samples = 64;  // Placements that are drawn beside the greedy one.
  bool alone = false;          // No heuristic may win in its place.
};
// The flags that say which policy it is, and those that say what a learned method makes of it.
void add_policy_flags(CLI::App& verb, PolicyOptions& options);
void add_answer_flags(CLI::App& verb, PolicyOptions& options);
// What both groups of flags and those of the search ask of place() and compare(). Throws InputError.
PlaceOptions place_options(const Options& options, const PolicyOptions& policy);

}  // namespace doppler
