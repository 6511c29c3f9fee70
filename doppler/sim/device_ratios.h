#pragma once

#include <optional>
#include <vector>

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// How long each device's ops take, measured over modelled: what a deployment corrects its simulator with. One number
// per device and run, the median of its ops weighted by their modelled time, so that neither a few odd ops nor the many
// tiny ones decide. Numbers are averaged geometrically with exponential forgetting.
//
// A device that no run uses is not believed to stay as it was: its ratio goes slowly to the median of the others, so
// that one that was slow and recovers is tried again some day. Links are not corrected.
class DeviceRatios {
 public:
  explicit DeviceRatios(const Problem& problem);

  void observe(const Timeline& timeline);
  // The best guess. Never observed: the median of the others, or 1.
  double ratio(DeviceId device) const;

  // A device whose last kRecent runs have a median that differs from the average of those before (at least as many) by
  // more than kDrift, and by more than twice what single runs usually differ.
  std::optional<DeviceId> drifted() const;
  double recent(DeviceId device) const;  // that median
  double usual(DeviceId device) const;   // and what it is compared with
  // From now on the last runs are what is usual.
  void settle();

  // The problem's machine with every device's slowdown times its ratio.
  Machine corrected() const;

  static constexpr std::size_t kRecent = 5;
  static constexpr double kDrift = 1.15;  // or its inverse

 private:
  struct State {
    // All logarithms.
    std::vector<double> recent;        // the last kRecent runs
    std::uint64_t past = 0, seen = 0;  // runs before those, and in all
    double usual = 0, deviation = 0;   // of the runs before: their average, and how far single ones are from it
    double average = 0;                // of all runs
    double guess = 0;                  // the same, on its way to the others' while the device is unused
  };
  double guess_of_others(DeviceId device) const;

  Problem problem_;
  std::vector<State> states_;  // by device
};

}  // namespace doppler
