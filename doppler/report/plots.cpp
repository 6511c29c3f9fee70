#include "doppler/report/plots.h"

#include <algorithm>

#include <fmt/format.h>

namespace doppler {

Plot scatter_plot(const ValidityResult& validity) {
  Plot plot;
  plot.title = "Measured against simulated time";
  plot.x_title = "simulated, s";
  plot.y_title = "measured, s";
  plot.diagonal = true;
  for (const Validity& of : validity.graphs) {
    Plot::Series series;
    series.label = fmt::format("{}: Pearson {:.3f}, Spearman {:.3f}", of.graph, of.pearson, of.spearman);
    for (const Validity::Sample& sample : of.samples)
      series.x.push_back(sample.simulated), series.y.push_back(sample.measured);
    plot.series.push_back(std::move(series));
  }
  return plot;
}

Plot service_plot(const ServiceResult& service) {
  Plot plot;
  plot.title = fmt::format("{} on {}", service.title, service.machine);
  plot.x_title = "run";
  plot.y_title = service.unitless ? "time" : "milliseconds";
  plot.series = {{.label = "incumbent", .x = {}, .y = {}}, {.label = "challenger", .x = {}, .y = {}}};
  const double unit = service.unitless ? 1 : 1e3;
  for (std::size_t run = 0; run < service.times.size(); ++run) {
    const std::size_t number = service.resumed_at + run;
    const bool challenger = std::binary_search(service.challengers.begin(), service.challengers.end(), number);
    Plot::Series& series = plot.series[challenger ? 1 : 0];
    series.x.push_back(static_cast<double>(number));
    series.y.push_back(service.times[run] * unit);
  }
  for (const ServiceResult::Drift& drift : service.drifts)
    plot.marks.push_back({static_cast<double>(drift.run) - 0.5,
                          drift.change == "slower" ? fmt::format("'{}' × {} slower", drift.name, drift.factor)
                                                   : fmt::format("'{}' {}", drift.name, drift.change)});
  for (const ServiceResult::Event& event : service.events)
    if (event.kind == "changed" && event.run >= service.resumed_at)
      plot.marks.push_back({static_cast<double>(event.run) - 0.5, "new placement"});
  plot.from_zero = true;
  return plot;
}

}  // namespace doppler
