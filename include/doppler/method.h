#pragma once

// Methods: ways to find a placement. place.h runs one by its name; this is what a method of your own looks like.
//
//   doppler::Proposal all_on_one(const doppler::Problem& problem, doppler::Objective&, const doppler::MethodOptions&) {
//     return {.placement = {.device_of_op = std::vector<doppler::DeviceId>(problem.op_count(), 0)}};
//   }
//   doppler::Method mine{"all_on_one", "everything on device 0", doppler::Method::Family::list, false, all_on_one};
//   doppler::PlaceResult found = doppler::place(problem, mine);   // place.h; verified, simulated, bounded
//
// Limits. A method judges placements by the objective that it is given and by nothing else, looks at its budget every
// few milliseconds, and hands back a placement that names an allowed device for every op; verify() checks that.

#include <functional>
#include <memory>
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
  std::uint64_t evaluations = 0;  // 0: it has just begun, and `best` means nothing
};

class LearnedPolicy;

struct MethodOptions {
  Budget budget = Budget::for_time(10.0);
  std::uint64_t seed = 0;
  unsigned threads = 1;                 // never changes the result, only how soon it is there
  Seconds known_bound = 0;              // a proven lower bound on the objective: a search that reaches it is done
  std::optional<Placement> start = {};  // A placement to begin with, or to beat: the answer is never worse.
  // How much worse than what the method found a simpler placement may be, as a share: one of fewer devices, then of
  // fewer bytes moved. None: what the method found is the answer.
  std::optional<double> tolerance = {};
  bool published = false;  // critical_path: with the defects of the published code, for parity
  std::shared_ptr<const LearnedPolicy> policy = nullptr;  // for learned methods and `auto`; null: not loaded
  std::function<void(const Progress&)> on_progress;       // called now and then, from the calling thread
};

// What a method hands back. Methods that evaluate by simulation count how often.
struct Proposal {
  Placement placement;
  std::uint64_t evaluations = 0;
  std::string winner = {};                   // the method that found it, if another
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
  std::string winner;  // who found the placement, where the method asks others or was out of time; else the method
  Placement placement;
  Seconds makespan = 0;
  Timeline timeline;  // of a run with exact times
  LowerBound bound;
  double gap = 0;  // makespan / bound - 1
  bool feasible = true;
  std::optional<Expectation> expected;  // if times vary and there was time
  Seconds seconds = 0;
  std::uint64_t evaluations = 0;
  std::uint64_t seed = 0;
  bool optimal = false;  // proven: makespan equals the bound
};

// Runs the method, verifies its placement, simulates it once, all within the budget. `bound` saves computing it again
// for each method. A method that has nothing when time is up is replaced by devices filled one after the other, and
// `memory_greedy` is named as the winner. Throws InfeasibleError if nothing that fits in memory was found.
Result place(Objective& objective, const Method& method, const MethodOptions& options, const LowerBound& bound);

}  // namespace doppler
