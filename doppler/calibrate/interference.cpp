#include "doppler/calibrate/interference.h"

#include <algorithm>

#include "doppler/base/statistics.h"

namespace doppler {
namespace {

// An op is alone if the others compute less than this share of its time, and beside them if all but this share.
constexpr double kSome = 0.2;
constexpr std::size_t kFewest = 5;  // there must be so many runs of each sort

// When a device computed; its ops follow one another.
class BusyTimes {
 public:
  void add(Seconds start, Seconds end) {
    starts_.push_back(start);
    busy_before_.push_back(busy_before_.back() + (end - start));
  }
  // Returns how long it computed between two moments.
  Seconds within(Seconds from, Seconds to) const { return until(to) - until(from); }

 private:
  Seconds until(Seconds moment) const {
    const auto begun =
        static_cast<std::size_t>(std::lower_bound(starts_.begin(), starts_.end(), moment) - starts_.begin());
    if (begun == 0) return 0;
    const Seconds last = busy_before_[begun] - busy_before_[begun - 1];
    return busy_before_[begun - 1] + std::min(last, moment - starts_[begun - 1]);
  }

  std::vector<Seconds> starts_;
  std::vector<Seconds> busy_before_ = {0};  // before the i-th op
};

}  // namespace

void Interference::add(const Graph& graph, const Timeline& timeline) {
  const std::size_t devices = timeline.busy.size();
  if (devices < 2) return;
  std::vector<BusyTimes> busy(devices);
  for (const Timeline::Execution& execution : timeline.executions)
    busy[execution.device].add(execution.start, execution.end);
  for (const Timeline::Execution& execution : timeline.executions) {
    const OpId op = execution.op;
    const Seconds time = execution.end - execution.start;
    if (time <= 0) continue;
    Seconds others = 0;
    for (DeviceId device = 0; device < devices; ++device)
      if (device != execution.device) others += busy[device].within(execution.start, execution.end);
    const double share = others / (time * static_cast<double>(devices - 1));
    Times& times = times_[signature(graph, op)];
    if (share < kSome) times.alone.push_back(time);
    if (share > 1 - kSome) times.beside.push_back(time);
  }
}

std::optional<double> Interference::of(const std::string& kind, const std::string& dtype) const {
  double beside = 0, alone = 0;
  for (const auto& [op, times] : times_) {
    if (op.kind != kind || op.dtype != dtype) continue;
    if (times.alone.size() < kFewest || times.beside.size() < kFewest) continue;
    const auto count = static_cast<double>(times.alone.size() + times.beside.size());
    beside += count * median(times.beside);
    alone += count * median(times.alone);
  }
  if (alone <= 0) return std::nullopt;
  return beside / alone;
}

}  // namespace doppler
