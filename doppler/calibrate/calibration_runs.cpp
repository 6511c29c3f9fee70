#include "doppler/calibrate/calibration_runs.h"

#include "doppler/base/error.h"
#include "doppler/calibrate/varied_placements.h"
#include "doppler/problem/graph_files.h"
#include "doppler/program/cut/decompose.h"
#include "doppler/program/expr/workloads.h"

namespace doppler {

Machine bare_machine(const std::string& type, DeviceId count) {
  std::vector<Device> devices(count);
  for (DeviceId id = 0; id < count; ++id) {
    devices[id].name = fmt::format("{}{}", type, id);
    devices[id].type = type;
    devices[id].rates = {{"*", "*", 1e10}};
    devices[id].memory_bytes_per_second = 1e10;
  }
  const Links model = type == "cpu" ? Links::shared : Links::channels;  // cores hand over in the memory that they share
  return Machine("this box", devices, std::vector<Link>(count * count, Link{1e-5, 1e10, 1, 1}), model);
}

std::vector<GraphFile> standard_graphs(DeviceId devices) {
  std::vector<GraphFile> graphs;
  const auto add = [&](const char* title, auto build) {
    auto made = std::make_shared<program::Program>();
    build(*made);
    program::DecomposeOptions cut;
    cut.parts = 4 * devices;
    program::Plan plan = program::decompose(*made, cut)[0].plan;
    graphs.push_back(lower_to_file(title, std::move(made), std::move(plan), {.title = title}));
  };
  for (const program::Index size : {512, 1024})
    add("chainmm", [&](program::Program& made) { program::chain_of_products(made, {.size = size}); });
  add("ffnn", [](program::Program& made) {
    program::feed_forward(made, {.batch = 1024, .input = 256, .hidden = 2048, .output = 256, .layers = 3});
  });
  add("llama-block", [](program::Program& made) {
    program::llama(made, {.width = 512,
                          .heads = 8,
                          .hidden = 1376,
                          .sequence = 256,
                          .part = program::LlamaOptions::Part::block,
                          .dtype = program::DType::f32});
  });
  return graphs;
}

std::vector<TimedPlacement> calibration_placements(const Problem& problem, unsigned count, std::uint64_t seed) {
  Calibration::check(problem.graph());  // before anything runs
  Rng rng(mix(seed, 1));
  std::vector<TimedPlacement> placements;
  for (unsigned i = 0; i < count; ++i) placements.push_back({random_placement(problem, rng)});
  return placements;
}

bool run_calibration(std::vector<CalibrationWorkload>& workloads, const CalibrationRunOptions& options,
                     Calibration& calibration) {
  Rng rng(options.seed);
  try {
    for (unsigned round = 0; round <= options.repeat; ++round)
      for (CalibrationWorkload& workload : workloads) {
        if (round > 1 && options.budget.out_of_time()) return true;
        run_round(workload.placements, rng, [&](const TimedPlacement& timed) {
          const Timeline timeline = workload.executor->run(timed.placement);
          if (round > 0) calibration.add(workload.executor->problem(), timed.placement, timeline);
        });
        if (options.on_round) options.on_round(round, workload);
      }
  } catch (const RunCancelled&) {
    return false;
  }
  return true;
}

}  // namespace doppler
