#include "doppler/report/page_bundle.h"

namespace doppler {

const PageBundle* page_bundle() { return nullptr; }

}  // namespace doppler
