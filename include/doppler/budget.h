#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <stop_token>

#include "doppler/units.h"

namespace doppler {

// How long a search may go on: a deadline, a number of evaluations, and a token that asks to stop, as Ctrl-C
// does. Only a number of evaluations gives the same result every time; a deadline depends on a clock, that on the wall
// or that of the process.
//
//   doppler::Budget budget = doppler::Budget::for_time(5).until(token);   // five seconds, or until somebody stops it
//   while (!budget.out_of_time()) improve();
class Budget {
 public:
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  static Budget unlimited() { return Budget(); }
  static Budget for_time(Seconds time);
  // The time of this process on its processors, all threads together, whatever else runs there: for comparisons on a
  // busy machine. A process that waits does not come nearer to its end.
  static Budget for_processor_time(Seconds time);
  static Budget for_evaluations(std::uint64_t count);

  // The same deadline or an earlier one: `fraction` of the time (and evaluations) that is left.
  Budget share(double fraction) const;
  // The same, but no more evaluations than that.
  Budget at_most(std::uint64_t evaluations) const;
  // The same deadline, and what is left of the evaluations after `used` of them; at least one.
  Budget less(std::uint64_t used) const;
  // The same, but the deadline is that much later, or earlier where the time is negative.
  Budget shifted_by(Seconds time) const;
  // The same, but it also ends when somebody requests to stop.
  Budget until(std::stop_token stop) const;

  bool out_of_time() const;   // deadline passed or interrupted; reads the clock, so ask once per few thousand steps
  Seconds time_left() const;  // infinity if no deadline
  bool has_deadline() const { return deadline_ != Clock::time_point::max(); }
  std::uint64_t evaluations() const { return evaluations_; }
  const std::stop_token& stop() const { return stop_; }
  bool interrupted() const { return stop_.stop_requested(); }

 private:
  using Clock = std::chrono::steady_clock;
  Budget ending_in(Seconds time) const;
  Clock::time_point now() const;

  Clock::time_point deadline_ = Clock::time_point::max();
  bool of_processor_ = false;  // which clock the deadline is of
  std::uint64_t evaluations_ = kUnlimited;
  std::stop_token stop_;
};

// Thrown where time is up before there is anything to return. A method that has found something returns it instead;
// place() has a cheap answer for those that have not.
class OutOfTime : public std::exception {
 public:
  const char* what() const noexcept override { return "time is up; required more time"; }
};

// Looks at the clock now and then for loops that have no end in sight. The first few thousand steps are free: what is
// that short is finished, whatever the clock says.
class Watch {
 public:
  explicit Watch(const Budget& budget) : budget_(budget) {}
  // Call it once per step, or with the number of steps before a stretch that cannot be interrupted. A step is some ten
  // nanoseconds. Throws OutOfTime.
  void step(std::uint64_t steps = 1) {
    steps_ += steps;
    if (steps_ < kStepsPerLook) return;
    steps_ = 0;
    if (budget_.out_of_time()) throw OutOfTime();
  }
  const Budget& budget() const { return budget_; }

 private:
  static constexpr std::uint64_t kStepsPerLook = 1 << 16;
  Budget budget_;
  std::uint64_t steps_ = 0;
};

}  // namespace doppler
