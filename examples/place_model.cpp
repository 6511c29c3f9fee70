// Reads an ONNX model, places it on four GPUs, and prints what that is worth and where every module goes:
//   place_model model.onnx
#include <doppler/errors.h>
#include <doppler/place.h>
#include <iostream>

int main(int argc, char** argv) try {
  const doppler::Machine machine = doppler::load_machine("v100x4");
  const doppler::LoadedProblem model =
      doppler::load_problem(argc > 1 ? argv[1] : "model.onnx", machine, {.granularity = doppler::Granularity::module});
  const doppler::PlaceResult found = doppler::place(model.problem, {.time = 3});
  const doppler::Outcome& outcome = found.run.outcome;
  std::cout << "makespan " << outcome.made.makespan << " s, " << (outcome.optimal ? 0 : 100 * outcome.gap)
            << " % above what no placement can beat\n"
            << doppler::device_map(model.file, found.placement, machine);
} catch (const doppler::InputError& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
