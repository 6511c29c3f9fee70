// How much of a policy gradient is noise: gradient_variance GRAPH MACHINE.
//
// With the parameters as they are, the gradient of many batches is computed. The table has the standard deviation of
// one batch's gradient over the length of the mean: √(tr Cov g) / |E g|, of an untrained policy and of one after some
// updates, with our credit (each placement against the mean of the others) and with that of HSDAG's published code (the
// discounted sum of 1 / makespan over the batch for all its placements, without a baseline). |E g|² is estimated
// without bias, |ḡ|² − tr Cov g / batches; where that is not positive, the mean does not stand out from the noise at
// all.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/learner.h"

namespace doppler {
namespace {

constexpr std::size_t kBatches = 32;
constexpr int kUpdates = 60;
constexpr double kDiscount = 0.95;  // of the published code

enum class Credit : std::uint8_t { ours, published };

std::vector<double> weights_of(const std::vector<Seconds>& makespans, Credit credit) {
  const auto batch = static_cast<double>(makespans.size());
  std::vector<double> weights;
  if (credit == Credit::published) {
    double sum = 0;
    for (const Seconds makespan : makespans) sum = kDiscount * sum + 1 / makespan;  // the newest counts most
    weights.assign(makespans.size(), sum);
    return weights;
  }
  double mean = 0, square = 0;
  for (const Seconds makespan : makespans) mean += makespan / batch, square += makespan * makespan / batch;
  const double deviation = std::sqrt(std::max(0.0, square - mean * mean)) + 1e-4 * mean;
  for (const Seconds makespan : makespans)
    weights.push_back(std::clamp((mean - makespan) / deviation * batch / (batch - 1), -3.0, 3.0));
  return weights;
}

// The deviation of one batch's gradient over the length of the mean, as text.
std::string noise(Policy& policy, Task& task, Credit credit) {
  std::vector<double> mean(policy.parameters().size(), 0.0);
  double square = 0;
  std::vector<Episode> batch(policy.batch());
  std::vector<Seconds> makespans(batch.size());
  for (std::size_t k = 0; k < kBatches; ++k) {
    Rng rng(mix(1, k));
    policy.begin(task.encoded(policy));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      policy.act(batch[i], Deciding::sampled, rng);
      makespans[i] = task.evaluate(batch[i]);
    }
    std::ranges::fill(policy.gradients(), 0.0F);
    const std::vector<double> weights = weights_of(makespans, credit);
    for (std::size_t i = 0; i < batch.size(); ++i) policy.backward(batch[i], {.decisions = weights[i]});
    policy.finish();
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const auto g = static_cast<double>(policy.gradients()[i]);
      mean[i] += g / kBatches;
      square += g * g / kBatches;
    }
  }
  std::ranges::fill(policy.gradients(), 0.0F);
  double length = 0;
  for (const double g : mean) length += g * g;
  if (square < 1e-12 * static_cast<double>(mean.size())) return "no gradient";
  const double covariance = std::max(0.0, square - length) * kBatches / (kBatches - 1);
  const double signal = length - covariance / kBatches;
  return signal > 0 ? fmt::format("{:.1f}", std::sqrt(covariance / signal)) : "lost";
}

void print_table(const std::string& path, const std::string& machine) {
  const Problem problem(parse_graph(path, read_file(path), {}).graph, load_machine(machine));
  fmt::print(
      "| {} batches | untrained, our credit | published credit | after {} updates, our credit | published credit |\n"
      "|---|---|---|---|---|\n",
      kBatches, kUpdates);
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == "paper") continue;  // It needs libtorch.
    const auto policy = make_policy(architecture.usual, Rng(1));
    Task task("variance", std::make_unique<ExactObjective>(problem));
    std::string line = fmt::format("| {} | {} | {} |", architecture.usual, noise(*policy, task, Credit::ours),
                                   noise(*policy, task, Credit::published));
    Learner learner(*policy, {});
    for (std::uint64_t i = 0; i < kUpdates; ++i) learner.reinforce(task, 3e-3, 3e-3, Rng(mix(2, i)));
    line += fmt::format(" {} | {} |", noise(*policy, task, Credit::ours), noise(*policy, task, Credit::published));
    std::cout << line << std::endl;
  }
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: gradient_variance GRAPH MACHINE\n";
    return 2;
  }
  try {
    doppler::print_table(argv[1], argv[2]);
  } catch (const doppler::InputError& error) {
    std::cerr << "gradient_variance: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
