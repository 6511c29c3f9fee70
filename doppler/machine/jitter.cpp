#include "doppler/machine/jitter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"

namespace doppler {
namespace {

void check_sigma(const std::string& where, double sigma) {
  if (!(sigma >= 0 && sigma <= kMostJitter))
    throw InputError(fmt::format("{}: found {}; required between 0 and {}", where, sigma, kMostJitter));
}

// exp(sigma·z - sigma²/2), z standard normal, has mean 1.
double lognormal(Rng& rng, double sigma) { return std::exp(sigma * rng.normal() - sigma * sigma / 2); }

}  // namespace

double Jitter::of_kind(std::string_view kind) const {
  for (const Kind& own : kinds)
    if (own.kind == kind) return own.sigma;
  return sigma;
}

bool Jitter::varies() const {
  return sigma > 0 || transfers > 0 || (tail.probability > 0 && tail.factor > 1) ||
         std::any_of(kinds.begin(), kinds.end(), [](const Kind& kind) { return kind.sigma > 0; });
}

Jitter Jitter::at_least(double least) const {
  Jitter other = *this;
  other.sigma = std::max(least, sigma);
  other.transfers = std::max(least, transfers);
  for (Kind& kind : other.kinds) kind.sigma = std::max(least, kind.sigma);
  return other;
}

void check_jitter(const std::string& where, const Jitter& jitter) {
  check_sigma(where + ": jitter", jitter.sigma);
  check_sigma(where + ": jitter of transfers", jitter.transfers);
  std::set<std::string_view> seen;
  for (const Jitter::Kind& kind : jitter.kinds) {
    check_sigma(fmt::format("{}: jitter of kind '{}'", where, kind.kind), kind.sigma);
    if (!seen.insert(kind.kind).second)
      throw InputError(fmt::format("{}: jitter: two sigmas for kind '{}'; required one", where, kind.kind));
  }
  const Jitter::Tail& tail = jitter.tail;
  if (!(tail.probability >= 0 && tail.probability <= kMostTailProbability))
    throw InputError(fmt::format("{}: probability of jitter's tail: found {}; required between 0 and {}", where,
                                 tail.probability, kMostTailProbability));
  if (!(tail.factor >= 1 && tail.factor <= kMostTailFactor))
    throw InputError(fmt::format("{}: factor of jitter's tail: found {}; required between 1 and {}", where, tail.factor,
                                 kMostTailFactor));
}

JitterDraw JitterDraw::number(std::size_t draw, Jitter jitter, std::uint64_t seed, std::uint64_t stream) {
  return {std::move(jitter), mix(stream == 0 ? seed : mix(seed, stream), draw)};
}

double JitterDraw::op_factor(const Graph& graph, OpId op) const {
  const double sigma = jitter.kinds.empty() ? jitter.sigma : jitter.of_kind(graph.kind(op));
  const Jitter::Tail& tail = jitter.tail;
  if (sigma == 0 && tail.probability == 0) return 1.0;
  Rng rng(mix(seed, op));
  const double body = lognormal(rng, sigma);
  if (tail.probability == 0) return body;
  const double mean = 1 + tail.probability * (tail.factor - 1);
  return body * (rng.uniform() < tail.probability ? tail.factor : 1) / mean;
}

double JitterDraw::transfer_factor(std::uint64_t index) const {
  if (jitter.transfers == 0) return 1.0;
  Rng rng(mix(~seed, index));
  return lognormal(rng, jitter.transfers);
}

}  // namespace doppler
