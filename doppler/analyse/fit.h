#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doppler/budget.h"
#include "doppler/problem.h"

namespace doppler {

// What a graph needs of memory, what a machine has, and what would make it fit. Everything under `remedies` was tried.
struct FitFacts {
  Bytes parameters = 0;                                      // of all ops
  Bytes working_set = 0;                                     // inputs and outputs of the op that has the largest
  Bytes needed() const { return parameters + working_set; }  // at least, however it is placed
  Bytes available = 0, largest_device = 0;
  std::size_t devices = 0;
  std::string largest_op;  // the op that needs most by itself, parameters and working set
  Bytes largest_op_needs = 0;
  struct Part {
    std::string name;  // a module or an op
    Bytes bytes = 0;
  };
  std::vector<Part> largest;  // by parameters, descending, a few
  std::vector<std::string> remedies;
};

// Whether quick methods find a placement that fits in memory.
bool fits_somehow(const Problem& problem, const Budget& budget);

// Says why a problem does not fit and what would make it fit: more devices, or half the bytes per number. Tries for as
// long as the budget lasts.
FitFacts analyse_fit(const Problem& problem, const Budget& budget);
// One line: what is needed, what is there, who needs most, what would help.
std::string describe_fit(const std::string& graph, const Machine& machine, const FitFacts& facts);

}  // namespace doppler
