// Work over capacity.
//
// Give each device a price l(d) >= 0 per second of a slot, with sum over d of l(d) slots(d) = 1. In an
// execution of length T the whole machine costs at most T. A unit of ops that share a device costs l(d) times
// its time on d wherever it is, so at least its cheapest offer:
//
//   T >= sum over units of min over allowed d of l(d) time(unit, d)
//
// for any prices. With equal devices all prices are 1 / slots and this is work / slots. Otherwise we look for
// good prices; the best ones give the optimum of the linear program that splits ops over devices. The right
// side is concave in the prices, so a search along the line between two kinds of device, one pair after the
// other, always climbs (and with two kinds finds the optimum).
#include "doppler/bounds/work_bound.h"

#include <algorithm>

#include "doppler/bounds/relaxation.h"

namespace doppler {
namespace {

constexpr std::size_t kEffort = 50'000'000;  // (unit, kind) offers compared: a fraction of a second
constexpr int kCycles = 3;                   // over all pairs of kinds
constexpr int kLineSteps = 30;               // golden sections; each shrinks the line by 0.618
constexpr double kPriceRounding = 1e-12;     // taken off, because prices are not exact

class Offers {
 public:
  explicit Offers(const Problem& problem) {
    const std::vector<std::uint32_t> kind = interchangeable_devices(problem);
    slots_.assign(*std::max_element(kind.begin(), kind.end()) + 1, 0.0);
    std::vector<DeviceId> representative(slots_.size());
    for (DeviceId device = 0; device < problem.device_count(); ++device) {
      slots_[kind[device]] += problem.machine().device(device).slots;
      representative[kind[device]] = device;
    }
    for (OpId op = 0; op < problem.op_count(); ++op) {
      if (problem.unit(op).front() != op) continue;
      for (const DeviceId device : representative) {
        Seconds time = problem.allows(op, device) ? 0 : Costs::kNever;
        if (time == 0)
          for (const OpId member : problem.unit(op)) time += problem.costs().op_time(member, device);
        time_.push_back(time);
      }
    }
  }

  std::size_t kinds() const { return slots_.size(); }
  std::size_t size() const { return time_.size(); }
  double slots(std::size_t kind) const { return slots_[kind]; }

  // The bound for a budget share per kind; shares add up to 1, and price = share / slots.
  Seconds cheapest(const std::vector<double>& share) const {
    std::vector<double> price(kinds());
    for (std::size_t k = 0; k < kinds(); ++k) price[k] = share[k] / slots_[k];
    Seconds total = 0;
    for (std::size_t unit = 0; unit < time_.size(); unit += kinds()) {
      Seconds least = Costs::kNever;
      for (std::size_t k = 0; k < kinds(); ++k)
        if (time_[unit + k] < Costs::kNever) least = std::min(least, time_[unit + k] * price[k]);
      total += least;
    }
    return total;
  }

 private:
  std::vector<double> slots_;
  std::vector<Seconds> time_;  // unit × kind; infinity where it may not go
};

// Moves share between kinds a and b to where the bound is largest.
void climb(const Offers& offers, std::size_t a, std::size_t b, std::vector<double>& share) {
  constexpr double kGolden = 0.6180339887498949;
  const double sum = share[a] + share[b];
  const auto value = [&](double part) {
    share[a] = part * sum;
    share[b] = sum - share[a];
    return offers.cheapest(share);
  };
  double low = 0, high = 1, left = 1 - kGolden, right = kGolden;
  Seconds left_value = value(left), right_value = value(right);
  for (int i = 0; i < kLineSteps; ++i) {
    if (left_value < right_value) {
      low = left, left = right, left_value = right_value;
      right = low + kGolden * (high - low);
      right_value = value(right);
    } else {
      high = right, right = left, right_value = left_value;
      left = high - kGolden * (high - low);
      left_value = value(left);
    }
  }
  value((low + high) / 2);
}

}  // namespace

Seconds work_bound(const Problem& problem, const Budget& budget) {
  Watch watch(budget);
  const Offers offers(problem);
  double slots = 0;
  for (std::size_t k = 0; k < offers.kinds(); ++k) slots += offers.slots(k);
  if (offers.kinds() == 1) return offers.cheapest({slots}) / slots;  // price 1, then one division: integers stay exact
  std::vector<double> share(offers.kinds());
  for (std::size_t k = 0; k < offers.kinds(); ++k) share[k] = offers.slots(k) / slots;
  Seconds best = offers.cheapest(share);
  std::size_t effort = kEffort;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    for (std::size_t a = 0; a < offers.kinds(); ++a) {
      for (std::size_t b = a + 1; b < offers.kinds(); ++b) {
        const std::size_t cost = offers.size() * (kLineSteps + 3);
        if (effort < cost) return best * (1 - kPriceRounding);
        effort -= cost;
        watch.step(cost);
        climb(offers, a, b, share);
        best = std::max(best, offers.cheapest(share));
      }
    }
  }
  return best * (1 - kPriceRounding);
}

}  // namespace doppler
