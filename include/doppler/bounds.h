#pragma once

// Lower bounds: a time that no placement of a problem can beat, so that a gap to it is a promise.
//
//   doppler::LowerBound bound = doppler::lower_bound(problem);
//   doppler::gap(makespan, bound.value);         // 0.08: at most 8 % could still be won
//   doppler::reaches(makespan, bound.value);     // the placement is proven optimal
//
// Limits. It holds for exact times; expected_bound() is for the mean over draws of a machine's jitter. On large graphs
// the expensive arguments look less far, so a gap there says more about the bound than about the placement.

#include <string_view>

#include "doppler/budget.h"
#include "doppler/problem.h"

namespace doppler {

// A time that no placement can beat, and the argument that proves it.
struct LowerBound {
  enum class Kind : std::uint8_t {
    work,           // total work over total capacity
    critical_path,  // the longest chain of fastest times
    communication,  // the longest chain, given that an input is either moved or computed on the same device
    interval,       // work that must fit between its heads and tails (after Fernandez and Bussell)
    search,         // every placement was searched (exact)
    contradiction,  // anything shorter forces ops together or apart until they no longer fit
  };
  Seconds value = 0;
  Kind kind = Kind::work;

  bool operator==(const LowerBound&) const = default;
};
std::string_view to_string(LowerBound::Kind kind);

// Whether a makespan is as low as a bound, but for the rounding of sums in another order.
inline bool reaches(Seconds makespan, Seconds bound) { return makespan <= bound * (1 + 1e-9); }
// How far a makespan is above a bound, as a fraction of the bound; 0 where there is none.
inline double gap(Seconds makespan, Seconds bound) { return bound > 0 ? makespan / bound - 1 : 0; }

// Returns the best of all kinds; the expensive ones look less far in large graphs, and `contradiction` is left out.
// It is an integer if all times are, and holds for every discipline, link model and priority. When the budget ends it
// is the best so far, at worst 0. The mathematics stands in bounds.cpp.
LowerBound lower_bound(const Problem& problem, const Budget& budget = Budget::unlimited());

// A time that the mean makespan over the first `draws` draws of the machine's jitter cannot beat, whatever placement is
// chosen before the draws are known: the mean of a lower bound of each draw. These are the draws by which results say
// what is to be expected. Looks less far than lower_bound(); 0 if time is up first.
Seconds expected_bound(const Problem& problem, std::size_t draws, const Budget& budget = Budget::unlimited());

// Says whether all times are integers, so that every exact makespan is one too, and sums of them are exact.
bool integer_times(const Problem& problem);

}  // namespace doppler
