#pragma once

namespace doppler {

// A sum with twice the digits of a double (Knuth's TwoSum, the errors kept in a second number): weights exp(score)
// differ by many orders of magnitude, and what remains after the largest has left must still be exact.
class PreciseSum {
 public:
  void add(double term) {
    const double sum = high_ + term;
    const double part = sum - high_;
    low_ += (high_ - (sum - part)) + (term - part);
    high_ = sum;
  }
  double value() const { return high_ + low_; }
  friend double operator-(const PreciseSum& a, const PreciseSum& b) { return (a.high_ - b.high_) + (a.low_ - b.low_); }

 private:
  double high_ = 0, low_ = 0;
};

}  // namespace doppler
