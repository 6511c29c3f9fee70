// What a user of the installed library writes: two ops, two devices, one method.
#include "doppler/place/method.h"
#include "doppler/report/summary.h"

int main() {
  doppler::GraphBuilder builder("consumer");
  builder.add_op({.explicit_times = {{"*", 3}}});
  builder.add_op({.explicit_times = {{"*", 4}}});
  const doppler::Graph graph = std::move(builder).build();
  const doppler::Machine machine = doppler::load_machine("uniform:2");
  const doppler::Costs costs(graph, machine);
  const doppler::Problem problem(costs, {});
  const doppler::Result result =
      doppler::place(problem, doppler::method_by_name("heft"), {}, doppler::lower_bound(problem));
  return doppler::format_time(result.makespan, true) == "4" && result.optimal ? 0 : 1;
}
