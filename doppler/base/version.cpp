#include "doppler/base/version.h"

namespace doppler {

std::string_view version() { return DOPPLER_VERSION; }

}  // namespace doppler
