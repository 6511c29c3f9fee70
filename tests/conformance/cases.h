#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "doppler/place/learned.h"
#include "tests/support/problems.h"

namespace doppler::test {

// One small problem with a name that tells how it was made: "diamond on heterogeneous, fifo, free, pinned".
struct Case {
  std::string name;
  Problem problem;
  LowerBound bound;
};

// Every small graph × machine × rules, with and without a pin; under sanitizers a fifth of them. All of them have a
// feasible placement.
const std::vector<Case>& all_cases();

// The policy of a learned method: the shipped one, or one that knows nothing yet; the shipped one for all others.
std::shared_ptr<const LearnedPolicy> policy_of(const Method& method);

// The name of a method as part of a test's: letters, digits and underscores.
inline std::string name_of(std::string_view method) {
  std::string name(method);
  if (name.back() == '+') name.replace(name.size() - 1, 1, "_plus");
  return name;
}

}  // namespace doppler::test
