#pragma once

#include <string>

#include "doppler/method.h"
#include "doppler/results.h"

namespace doppler {

// What is known of a placement of the problem before any method has run. `graph` is the user's name for the graph.
Outcome outcome_of(const Problem& problem, std::string graph, const LowerBound& bound);
// The same after a method has.
Outcome outcome_of(const Problem& problem, std::string graph, const Result& result);
// Adds the makespan to expect if times vary as the machine says; nothing if it says nothing.
void add_expectation(Outcome& outcome, const Problem& problem, const Placement& placement);
// What no placement's expected makespan can beat; nothing where times do not vary, or where that takes too long.
std::optional<Seconds> bound_on_expectation(const Problem& problem, const Budget& budget = Budget::unlimited());

// One line that says why a run does not fit: op, device, bytes.
std::string describe(const std::string& graph, const Problem& problem, const Timeline::Overflow& overflow);

// The makespan of everything on the best device that can run and hold it all; none may, or there may be no time to ask
// all of them.
std::optional<Seconds> best_single_device(ExactObjective& objective, const Budget& budget);
// Work over the longest chain, by the fastest time of each op: as many devices could be busy on average.
double parallelism(const Problem& problem);

// Whether everything may go to one device.
bool may_run_all(const Problem& problem, DeviceId device);

// Throws InputError if a user's placement contradicts the machine or the graph; `where` starts the text. A method's
// placement may not, which is verify()'s business.
void check_allowed(const std::string& where, const Problem& problem, const Placement& placement);

}  // namespace doppler
