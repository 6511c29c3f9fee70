#include "doppler/learn/policy.h"

namespace doppler {

Placement Episode::placement() const { return {device_of_op, ranks_from_order(order), {}}; }

}  // namespace doppler
