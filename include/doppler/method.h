#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "doppler/bounds.h"
#include "doppler/budget.h"
#include "doppler/objective.h"

namespace doppler {

struct Progress {
  std::string_view method;
  Seconds best = 0;
  std::uint64_t evaluations = 0;
};

class LearnedPolicy;

struct MethodOptions {
  Budget budget = Budget::for_time(10.0);
  std::uint64_t seed = 0;
  unsigned threads = 1;                   // never changes the result, only how soon it is there
  Seconds known_bound = 0;                // a proven lower bound on the objective: a search that reaches it is done
  bool published = false;                 // critical_path: with the defects of the published code, for parity
  const LearnedPolicy* policy = nullptr;  // for `doppler` and `auto`; none: not loaded
  std::function<void(const Progress&)> on_progress;  // called now and then, from the calling thread
};

// What a method hands back. Methods that evaluate by simulation count how often.
struct Proposal {
  Placement placement;
  std::uint64_t evaluations = 0;
  std::string winner = {};                   // auto: the method that found it
  std::optional<Seconds> proven_bound = {};  // exact: what it proved, if better than lower_bound()
};

struct Method {
  std::string_view name;     // from the literature
  std::string_view summary;  // one line, for --help
  enum class Family : std::uint8_t { list, partition, search, learned } family;
  bool anytime;  // uses the whole time budget; otherwise returns as soon as it is done
  Proposal (*run)(const Problem&, Objective&, const MethodOptions&);
};

// Every method, in the order of the documentation. The one place to add yours. A method gets the problem, what its
// placements are judged by, and how long it may take.
std::span<const Method> methods();
const Method& method_by_name(std::string_view name);  // throws InputError listing the names
std::string learned_methods();                        // the names of those that are learned, for texts

// A placement with its value.
struct Result {
  std::string method;
  std::string winner;  // auto: who won; otherwise equal to method
  Placement placement;
  Seconds makespan = 0;
  Timeline timeline;  // of a run with exact times
  LowerBound bound;
  double gap = 0;  // makespan / bound - 1
  bool feasible = true;
  Seconds seconds = 0;
  std::uint64_t evaluations = 0;
  std::uint64_t seed = 0;
  bool optimal = false;  // proven: makespan equals the bound
};

// Runs the method, verifies its placement, simulates it once. `bound` saves computing it again for each method.
// Throws InfeasibleError if the method found nothing that fits in memory.
Result place(Objective& objective, const Method& method, const MethodOptions& options, const LowerBound& bound);

}  // namespace doppler
