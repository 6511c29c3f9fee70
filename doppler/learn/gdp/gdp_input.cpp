#include "doppler/learn/gdp/gdp_input.h"

namespace doppler {

GdpInput::GdpInput(const Problem& problem)
    : units_(problem),
      features_(unit_features(units_)),
      speeds_(relative_speeds(units_.seconds(), problem.device_count())) {
  for (const auto& [from, to] : units_.graph().edges) from_.push_back(from), to_.push_back(to);
}

}  // namespace doppler
