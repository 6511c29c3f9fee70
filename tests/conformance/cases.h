#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/place/world.h"

namespace doppler::test {

// One small problem with a name that tells how it was made: "diamond on heterogeneous, fifo, free, pinned".
struct Case {
  std::string name;
  std::shared_ptr<const World> world;  // shared: cases are copied into lists
  LowerBound bound;
};

// Every small graph × machine × rules, with and without a pin. All of them have a feasible placement.
const std::vector<Case>& all_cases();

}  // namespace doppler::test
