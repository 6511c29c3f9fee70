#pragma once

#include "doppler/app/models.h"
#include "doppler/app/options.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/report/outcome.h"

namespace doppler {

// The front half of the pipeline: a graph file on a machine under some rules. Its parts refer to one another,
// so it stays where it is.
class Study {
 public:
  // Reads the graph and the machine; reports the reader's warnings unless --quiet. Throws InputError.
  Study(const std::string& path, const Options& options);
  // Of what is in memory already; `path` only names it.
  Study(std::string path, LoadedModel loaded, Machine machine, const Options& options);
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  const std::string& path() const { return path_; }
  const LoadedModel& loaded() const { return loaded_; }
  const Graph& graph() const { return loaded_.graph; }
  const Machine& machine() const { return machine_; }
  const Costs& costs() const { return costs_; }
  const Problem& problem() const { return problem_; }

  std::string show_time(Seconds value) const;

 private:
  std::string path_;
  LoadedModel loaded_;
  Machine machine_;
  Costs costs_;
  Problem problem_;
};

LoadedModel load_graph(const std::string& path, const Options& options);

// What is known before any method has run.
Outcome outcome_of(const Study& study, const Options& options, const LowerBound& bound);
Outcome outcome_of(const Study& study, const Options& options, const Result& result);

// The makespan to expect if times vary as the machine says; none if it says nothing, or if the rules have noise already.
std::optional<Seconds> expected_on_machine(const Study& study, const Placement& placement);

// "12.3 %", and "0 %, proven optimal" where it is.
std::string show_gap(const Outcome& outcome);

// One line that says why the run does not fit: op, device, bytes.
std::string describe_overflow(const Study& study, const Timeline::Overflow& overflow);

// The end of what `place` and `simulate` print: makespan, what to expect, bound, gap, transfers, devices.
std::string describe_run(const Study& study, const Outcome& outcome, const Timeline& timeline);

}  // namespace doppler
