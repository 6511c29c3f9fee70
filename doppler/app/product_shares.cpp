#include "doppler/app/product_shares.h"

#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/kernels/host/product_speed.h"

namespace doppler {

std::vector<ProductShare> product_shares(bool quiet) {
  constexpr double kWorthAWarning = 0.5;
  std::vector<ProductShare> shares;
  for (const ProductSpeed& speed : measure_products()) {
    shares.push_back({std::string(to_string(speed.dtype)), speed.peak, speed.products});
    if (const ProductShare& last = shares.back(); last.share() < kWorthAWarning && !quiet)
      complain(
          fmt::format("warning: products of {} reach {:.0f} % of this core's peak; required half of it "
                      "(docs/engine.md, Kernels; is OPENBLAS_CORETYPE set?)",
                      last.dtype, 100 * last.share()));
  }
  return shares;
}

}  // namespace doppler
