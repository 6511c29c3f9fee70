#pragma once

#include <optional>
#include <vector>

#include "doppler/sim/problem.h"
#include "doppler/sim/timeline.h"

namespace doppler {

// How long each device's ops take, measured over modelled: what a deployment corrects its simulator with. One number
// per device and run, the median of its ops weighted by their modelled time, so that neither a few odd ops nor the many
// tiny ones decide. Numbers are averaged geometrically with exponential forgetting.
//
// A device that no run uses is not believed to stay as it was: its ratio goes slowly to the median of the others, so
// that one that was slow and recovers is tried again some day. Links are not corrected.
class DeviceRatios {
 public:
  // Must outlive it.
  explicit DeviceRatios(const Problem& problem);

  void observe(const Timeline& timeline);
  // The best guess. Never observed: the median of the others, or 1.
  double ratio(DeviceId device) const;

  // A device whose last kRecent runs have a median that differs from its average by more than kDrift, and by more than
  // twice what single runs usually differ.
  std::optional<DeviceId> drifted() const;
  double recent(DeviceId device) const;   // that median
  double average(DeviceId device) const;  // and what it is compared with
  // From now on the last runs are what is usual.
  void settle();

  // The problem's machine with every device's slowdown times its ratio.
  Machine corrected() const;

  static constexpr std::size_t kRecent = 5;
  static constexpr double kDrift = 1.15;  // or its inverse

 private:
  struct State {
    std::vector<double> recent;  // logarithms of the last kRecent ratios
    std::uint64_t seen = 0;      // runs in the average
    double average = 0;          // logarithm
    double deviation = 0;        // usual distance from the average
    double guess = 0;            // the average, on its way to the others' while the device is unused
  };
  double guess_of_others(DeviceId device) const;

  const Problem& problem_;
  std::vector<State> states_;  // by device
};

}  // namespace doppler
