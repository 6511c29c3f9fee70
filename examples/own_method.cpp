// Plugs in an objective and a method from outside. The objective charges every byte that moves between devices, on top
// of the makespan; the method tries random placements and keeps the best by whatever objective it is given.
#include <doppler/errors.h>
#include <doppler/place.h>
#include <doppler/simulate.h>
#include <iostream>
#include <random>
#include <set>

class FrugalObjective final : public doppler::Objective {
 public:
  explicit FrugalObjective(const doppler::Problem& problem) : Objective(problem), makespan_(problem) {}
  std::string_view name() const override { return "frugal"; }
  doppler::Seconds value(std::span<const doppler::DeviceId> device_of_op,
                         std::span<const std::uint32_t> priority) override {
    constexpr doppler::Seconds kPerByte = 1e-9;
    const doppler::Graph& graph = problem().graph();
    double moved = 0;
    for (doppler::TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
      std::set<doppler::DeviceId> elsewhere;  // a tensor moves once per device, however many ops read it there
      for (const doppler::OpId consumer : graph.consumers(tensor)) elsewhere.insert(device_of_op[consumer]);
      elsewhere.erase(device_of_op[graph.producer(tensor)]);
      moved += static_cast<double>(graph.bytes(tensor)) * static_cast<double>(elsewhere.size());
    }
    return makespan_.value(device_of_op, priority) + kPerByte * moved;
  }
  using Objective::value;
  std::unique_ptr<Objective> another() const override { return std::make_unique<FrugalObjective>(problem()); }

 private:
  doppler::ExactObjective makespan_;
};

doppler::Proposal best_of_many(const doppler::Problem& problem, doppler::Objective& objective,
                               const doppler::MethodOptions& options) {
  std::mt19937_64 random(options.seed);
  doppler::Proposal best;
  double least = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    doppler::Placement placement;
    placement.device_of_op.resize(problem.op_count());
    for (doppler::OpId op = 0; op < problem.op_count(); ++op) {
      const auto devices = problem.devices(op);
      const doppler::DeviceId device = devices[random() % devices.size()];
      for (const doppler::OpId member : problem.unit(op)) placement.device_of_op[member] = device;  // colocated ops
    }
    const double value = objective.value(placement);
    if (best.evaluations++ > 0 && value >= least) continue;
    least = value;
    best.placement = placement;
  }
  return best;
}

int main(int argc, char** argv) try {
  const doppler::Problem problem =
      doppler::load_problem(argc > 1 ? argv[1] : "examples/blocks.json", doppler::load_machine("p100x4")).problem;
  const auto frugal = std::make_shared<FrugalObjective>(problem);
  const doppler::Method mine{"best_of_many", "the best of 200 random placements", doppler::Method::Family::search,
                             false, best_of_many};
  const doppler::PlaceResult own = doppler::place(problem, mine, {.objective = frugal});
  const doppler::PlaceResult annealed =
      doppler::place(problem, {.method = "anneal", .evaluations = 20'000, .objective = frugal});
  std::cout << "best of 200 random placements: " << frugal->value(own.placement) << "\n"
            << "annealing by the same objective: " << frugal->value(annealed.placement) << "\n";
  return frugal->value(annealed.placement) <= frugal->value(own.placement) ? 0 : 1;
} catch (const doppler::InputError& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
