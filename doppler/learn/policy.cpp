#include "doppler/learn/policy.h"

#include "doppler/base/error.h"

namespace doppler {

Placement Episode::placement() const { return {device_of_op, ranks_from_order(order), {}}; }

void Policy::replay(Episode&) { throw InternalError(fmt::format("{} learns once from an episode", name())); }

}  // namespace doppler
