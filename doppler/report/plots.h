#pragma once

#include "doppler/report/plot.h"
#include "doppler/results.h"

namespace doppler {

// Measured against simulated times, a dot per placement.
Plot scatter_plot(const ValidityResult& validity);
// The time of every run of a service, with its drifts and changes marked.
Plot service_plot(const ServiceResult& service);

}  // namespace doppler
