#pragma once

// How much times vary from what is modelled.
//
//   doppler::Jitter plain = 0.1;                                   // the same sigma for every op and every transfer
//   doppler::Jitter fitted = 0.03;
//   fitted.kinds = {{"matmul", 0.02}, {"add", 0.12}};              // ops of these kinds have their own
//   fitted.transfers = 0.2;
//   fitted.tail = {.probability = 0.002, .factor = 8};             // one op in 500 takes eight times as long
//
// An op takes its modelled time times a factor that is drawn once per run: exp(σz − σ²/2) with a standard normal z and
// the sigma of the op's kind, times `tail.factor` with `tail.probability`, divided by the mean of all that. So every
// factor has mean 1. A transfer's factor has `transfers` for its sigma and no tail.
//
// Limits. Factors are independent of one another. What all ops of a run have in common is left out: it makes every
// placement slower alike. Devices of one machine vary alike.

#include <string>
#include <string_view>
#include <vector>

namespace doppler {

struct Jitter {
  struct Kind {
    std::string kind;
    double sigma = 0;

    bool operator==(const Kind&) const = default;
  };
  // Few times are far longer than usual: something else had the device.
  struct Tail {
    double probability = 0;
    double factor = 1;

    bool operator==(const Tail&) const = default;
  };

  Jitter() = default;
  // A plain number is the sigma of every op and every transfer.
  Jitter(double everywhere)
      : sigma(everywhere), transfers(everywhere) {}  // NOLINT(google-explicit-constructor): a number is one

  double sigma = 0;         // of ops whose kind has none of its own
  double transfers = 0;     // of transfers
  std::vector<Kind> kinds;  // each kind at most once
  Tail tail;

  double of_kind(std::string_view kind) const;
  // Whether any time varies at all.
  bool varies() const;
  // Whether it is one number for everything.
  bool plain() const { return kinds.empty() && transfers == sigma && tail == Tail(); }
  // The same with every sigma at least this.
  Jitter at_least(double least) const;

  bool operator==(const Jitter&) const = default;
};

// More jitter than this is refused: no time would mean anything.
inline constexpr double kMostJitter = 3;
// A tail that is no longer rare, or longer than this, is refused.
inline constexpr double kMostTailProbability = 0.5;
inline constexpr double kMostTailFactor = 1e6;

}  // namespace doppler
