// Builds a graph in code: two matrix products that a third one reads. On two devices the first two can run side by
// side.
#include <doppler/errors.h>
#include <doppler/place.h>
#include <doppler/simulate.h>
#include <iostream>

int main() try {
  doppler::GraphBuilder builder("three products");
  const auto product = [&](const char* name) {
    return builder.add_op({.name = name, .kind = "matmul", .dtype = "f32", .flops = 2e12, .bytes_written = 64 << 20});
  };
  const doppler::OpId a = product("a"), b = product("b"), c = product("c");
  builder.add_consumer(builder.add_tensor(a, 64 << 20), c);  // 64 MiB from a to c
  builder.add_consumer(builder.add_tensor(b, 64 << 20), c);

  const doppler::Problem problem(std::move(builder).build(), doppler::load_machine("p100x4"));
  const doppler::PlaceResult found = doppler::place(problem, {.method = "exact", .time = 1});
  for (doppler::OpId op = 0; op < problem.op_count(); ++op)
    std::cout << problem.graph().name(op) << " on " << problem.machine().device(found.placement.device_of_op[op]).name
              << "\n";
  const doppler::SimulationResult one = doppler::simulate(problem, {.device_of_op = {0, 0, 0}});
  std::cout << "speed-up over one device " << one.outcome.made.makespan / found.run.outcome.made.makespan << "\n";
} catch (const doppler::InputError& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
