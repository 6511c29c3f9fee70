#pragma once

#include <functional>
#include <string>

#include "doppler/kernels/kernels.h"

namespace doppler {

// Kernels of a program or a model, which has results.
class ComputingKernels : public Kernels {
 public:
  // Says whether the ops that compute results keep them. They do not at first, because it takes time. It must not be
  // called during a run.
  virtual void keep_results(bool keep) = 0;
  // Hands over the results that the last run left, by name, as the content of .npy files.
  virtual void take_results(const std::function<void(const std::string& name, std::string npy)>& take) const = 0;
};

}  // namespace doppler
