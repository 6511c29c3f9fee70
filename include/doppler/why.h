#pragma once

// Why a placement takes as long as it does, and what another one does differently.
//
//   doppler::WhyResult answer = doppler::why(problem, placement, {.names = {"layers.3"}});
//   answer.limit;                         // "parallelism", "links", "one device", …
//   answer.help.front().change;           // what would help most, simulated
//   std::cout << doppler::to_text(answer);
//
// Limits. Everything is by exact times. The chain is one of possibly many that are equally long. What would help is
// found by the placement as it is and by quick methods, so that a search may find more.

#include <string>
#include <vector>

#include "doppler/problem.h"
#include "doppler/results.h"

namespace doppler {

struct WhyOptions {
  std::vector<std::string> names = {};  // ops, modules or patterns of them that are asked for
  std::string graph = {};               // the name that the result has for the graph; empty: its title
  bool help = true;                     // look for what would help, which takes some simulations of other machines
};

// Throws InputError if a name matches nothing, or the placement contradicts the problem.
WhyResult why(const Problem& problem, const Placement& placement, const WhyOptions& options = {});

// What differs between two placements of one problem, and what each difference is worth by itself.
DiffResult diff(const Problem& problem, const Placement& a, const Placement& b, const std::string& graph = {});

// The causes of a placement by simulation, whoever made it: for every unit whether any other device would do as well.
// Pins and groups keep their cause. Takes a simulation per unit and device.
std::vector<Cause> simulated_causes(const Problem& problem, const Placement& placement);

// A run for drawing (schedule.h): the timeline of a placement, simulated or measured.
Schedule schedule_of(const Problem& problem, const Placement& placement, const Timeline& timeline,
                     bool measured = false);

}  // namespace doppler
