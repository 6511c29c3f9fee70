#pragma once

#include "doppler/app/options.h"
#include "doppler/problem/load.h"
#include "doppler/report/outcome.h"

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

std::string show_time(const LoadedProblem& loaded, Seconds value);

// What is known before any method has run.
Outcome outcome_of(const LoadedProblem& loaded, const Options& options, const LowerBound& bound);
Outcome outcome_of(const LoadedProblem& loaded, const Options& options, const Result& result);

// The makespan to expect if times vary as the machine says; none if it says nothing.
std::optional<Seconds> expected_on_machine(const Problem& problem, const Placement& placement);

// "12.3 %", and "0 %, proven optimal" where it is.
std::string show_gap(const Outcome& outcome);

// One line that says why the run does not fit: op, device, bytes.
std::string describe_overflow(const LoadedProblem& loaded, const Timeline::Overflow& overflow);

// The end of what `place` and `simulate` print: makespan, what to expect, bound, gap, transfers, devices.
std::string describe_run(const LoadedProblem& loaded, const Outcome& outcome, const Timeline& timeline);

}  // namespace doppler
