#include "doppler/engine/kernels.h"

#include "doppler/base/error.h"

namespace doppler {

bool Kernels::folds(OpId) const { return false; }

void Kernels::fold(OpId op, std::size_t, bool, const OpBuffers&) {
  throw InternalError(fmt::format("op {}: it folds no inputs; required folds() before fold()", op));
}

}  // namespace doppler
