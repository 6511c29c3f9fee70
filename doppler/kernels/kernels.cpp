#include "doppler/kernels/kernels.h"

#include "doppler/base/error.h"

namespace doppler {

const DeviceMemory& Kernels::memory() const {
  static const DeviceMemory host;
  return host;
}

bool Kernels::folds(OpId) const { return false; }

void Kernels::fold(OpId op, DeviceId, std::size_t, bool, const OpBuffers&) {
  throw InternalError(fmt::format("op {} was asked to fold; required an op for which folds() is true", op));
}

}  // namespace doppler
