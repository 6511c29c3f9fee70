#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// One ratio, measured over modelled, as it is seen run by run: averaged geometrically with exponential forgetting. All
// numbers but the counts are logarithms.
struct RatioTrack {
  std::vector<double> recent;        // the last kRecent runs
  std::uint64_t past = 0, seen = 0;  // runs before those, and in all
  double usual = 0, deviation = 0;   // of the runs before: their average, and how far single ones are from it
  double average = 0;                // of all runs
  double guess = 0;                  // the same, on its way to what others are while nobody sees it

  static constexpr std::size_t kRecent = 5;

  // Takes what one run says.
  void observe(double value);
  // Whether the median of the last kRecent runs differs from the average of those before (at least as many) by more
  // than `least`, and by more than `deviations` times what single runs usually differ.
  bool drifted(double least, double deviations) const;
  // From now on the last runs are what is usual.
  void settle();

  bool operator==(const RatioTrack&) const = default;
};

// How long ops and transfers take, measured over modelled: what a simulator is corrected with.
//
// Per device and run there is one number, the median of its ops weighted by their modelled time, so that neither a few
// odd ops nor the many tiny ones decide. Per kind of op and device there is how much that kind differs from it. Per
// link (one direction) it is the weighted median of the transfers from their start to their end: the time that they
// queued is left out, because a simulator finds that by itself. To both times a hundredth of the run is added, so that
// transfers that are short beside the run hardly say anything. A link of which little was seen is as the others of its
// class are, which are those that the machine says are equal.
//
// A device or a link that no run uses is not believed to stay as it was: its ratio goes slowly to the median of the
// others, so that one that was slow and recovers is tried again some day.
class TimeRatios {
 public:
  explicit TimeRatios(const Problem& problem);

  void observe(const Timeline& timeline);
  // Takes somebody's word for a device.
  void believe(DeviceId device, double ratio);
  // The best guess. Never observed: the median of the others, or 1.
  double ratio(DeviceId device) const;
  double ratio(DeviceId src, DeviceId dst) const;  // of a link
  // How much longer than the device's other ops those of the op's kind take there.
  double kind_ratio(OpId op, DeviceId device) const { return kind_factor(kind_of_op_[op], device); }

  // A device or a link that is not what it was.
  struct Drifted {
    DeviceId src = 0, dst = 0;      // the same: a device
    double recent = 1, before = 1;  // the median of its last runs, and the average of those before
    bool link() const { return src != dst; }
  };
  std::optional<Drifted> drifted() const;
  // From now on the last runs are what is usual.
  void settle();

  // The problem's machine with every device's slowdown and every link's times multiplied by their ratios. Where kinds
  // differ, the devices have the time of every op of the graph (that has no explicit one) as measured.
  Machine corrected() const;

  // All that it knows, to be kept and taken up by another of the same problem.
  const std::vector<RatioTrack>& tracks() const { return tracks_; }
  // Returns false, and takes up nothing, if they are not those of this problem.
  bool restore(std::vector<RatioTrack> tracks);

  static constexpr double kDrift = 1.15;     // of a device, or its inverse
  static constexpr double kLinkDrift = 1.4;  // of a link, or its inverse; few transfers make its median

 private:
  RatioTrack& link(DeviceId src, DeviceId dst) { return tracks_[devices_ + src * devices_ + dst]; }
  const RatioTrack& link(DeviceId src, DeviceId dst) const { return tracks_[devices_ + src * devices_ + dst]; }
  RatioTrack& kind(std::size_t kind, DeviceId device) {
    return tracks_[devices_ * (1 + devices_) + kind * devices_ + device];
  }
  const RatioTrack& kind(std::size_t kind, DeviceId device) const {
    return const_cast<TimeRatios*>(this)->kind(kind, device);
  }
  void observe_ops(const Timeline& timeline);
  void observe_links(const Timeline& timeline);
  double guess_of_others(DeviceId device) const;
  // The guesses of the links that were seen, in ascending order: those of each class, and of all.
  struct SeenLinks {
    std::vector<std::vector<double>> of_class;
    std::vector<double> all;
  };
  SeenLinks seen_links() const;
  double guess_of_class(DeviceId src, DeviceId dst, const SeenLinks& seen) const;
  double ratio(DeviceId src, DeviceId dst, const SeenLinks& seen) const;
  double kind_factor(std::size_t kind, DeviceId device) const;
  std::vector<Measured> measured(DeviceId device) const;

  Problem problem_;
  const DeviceId devices_;
  std::vector<std::size_t> kind_of_op_;  // numbered from 0
  std::size_t kinds_ = 0;
  std::vector<RatioTrack> tracks_;  // by device, then by link (src, dst), then by kind and device
};

// The ratios of devices that explain measured makespans best, for systems that keep no timelines: those by which the
// simulator is the least wrong, in squares of logarithms, with a small price on ratios that differ from the common one.
// Found by changing one device's ratio at a time. Links stay as modelled.
struct MeasuredMakespan {
  Placement placement;
  Seconds makespan = 0;
};
TimeRatios fit_time_ratios(const Problem& problem, std::span<const MeasuredMakespan> measured);

}  // namespace doppler
