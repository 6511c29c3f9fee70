#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "doppler/graph/op_signature.h"
#include "doppler/timeline.h"

namespace doppler {

// How much longer ops take while the other devices compute, because they share caches and memory bandwidth. It follows
// from timelines of runs in which that differs from op to op.
class Interference {
 public:
  void add(const Graph& graph, const Timeline& timeline);

  // Returns the time beside others that compute over the time alone, of ops of equal size: the mean, weighted by time.
  // There is none if too few ran one way or the other.
  std::optional<double> of(const std::string& kind, const std::string& dtype) const;

 private:
  struct Times {
    std::vector<Seconds> alone, beside;
  };
  std::map<OpSignature, Times> times_;
};

}  // namespace doppler
