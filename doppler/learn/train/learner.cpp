#include "doppler/learn/train/learner.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>

#include "doppler/base/error.h"

namespace doppler {

Learner::Learner(Policy& policy, const LearnerOptions& options)
    : policy_(policy),
      options_(options),
      adam_(policy.parameters().size()),
      adam_before_(adam_),
      batch_(options.batch > 0 ? options.batch : policy.batch()),
      makespans_(batch_.size()),
      advantages_(batch_.size()),
      step_advantages_(batch_.size()) {
  options_.batch = batch_.size();
  DOPPLER_CHECK(options_.batch >= 2, "batch {}: the others are the baseline", options_.batch);
}

class Learner::Whole {
 public:
  explicit Whole(Learner& learner) : learner_(learner), exceptions_(std::uncaught_exceptions()) {
    const std::span<const float> parameters = learner.policy_.parameters();
    learner.adam_before_ = learner.adam_;
    learner.parameters_before_.assign(parameters.begin(), parameters.end());
  }
  ~Whole() {
    if (std::uncaught_exceptions() > exceptions_) learner_.undo();
  }
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;

 private:
  Learner& learner_;
  const int exceptions_;
};

void Learner::undo() {
  adam_ = adam_before_;
  std::copy(parameters_before_.begin(), parameters_before_.end(), policy_.parameters().begin());
  std::fill(policy_.gradients().begin(), policy_.gradients().end(), 0.0F);
}

double Learner::finish(double rate) {
  policy_.finish();
  return adam_.step(policy_.parameters(), policy_.gradients(), rate, options_.largest_gradient);
}

void Learner::follow(std::span<const OpId> order, std::span<const DeviceId> device_of_op, double weight) {
  policy_.follow(imitation_, order, device_of_op);
  policy_.backward(imitation_, {.decisions = weight});
}

UpdateReport Learner::imitate(Task& task, TeacherRule teacher, double rate, Rng rng) {
  const Whole whole(*this);
  policy_.begin(task.encoded(policy_));
  UpdateReport report;
  for (const std::string_view part : policy_.parts()) report.agreement.push_back({part});
  const auto batch = static_cast<double>(options_.batch);
  const double ops = task.problem().op_count(), weight = 1 / (batch * ops);
  for (std::size_t i = 0; i < options_.batch; ++i) {
    policy_.imitate(imitation_, teacher, rng);
    policy_.backward(imitation_, {.decisions = weight});
    report.entropy += imitation_.entropy / batch;
    for (std::size_t part = 0; part < report.agreement.size(); ++part)
      report.agreement[part].share += imitation_.agreement[part] / batch;
    report.log_probability += imitation_.log_probability * weight;
  }
  report.gradient_norm = finish(rate);
  return report;
}

UpdateReport Learner::follow_best(Task& task, double rate) {
  const Whole whole(*this);
  policy_.begin(task.encoded(policy_));
  const double ops = task.problem().op_count();
  const Elite& best = task.elites().front();
  follow(best.order, best.device_of_op, 1 / ops);
  UpdateReport report;
  report.entropy = imitation_.entropy;
  report.log_probability = imitation_.log_probability / ops;
  report.gradient_norm = finish(rate);
  return report;
}

UpdateReport Learner::reinforce(Task& task, double rate, double entropy, Rng rng) {
  const Whole whole(*this);
  policy_.begin(task.encoded(policy_));
  UpdateReport report;
  const auto batch = static_cast<double>(options_.batch);
  const double ops = task.problem().op_count();
  report.best = Costs::kNever;
  for (std::size_t i = 0; i < options_.batch; ++i) {
    policy_.act(batch_[i], Deciding::sampled, rng);
    makespans_[i] = task.evaluate(batch_[i]);
    report.mean += makespans_[i] / batch;
    report.best = std::min(report.best, makespans_[i]);
    report.entropy += batch_[i].entropy / batch;
  }
  find_advantages(report.mean, ops);
  learn_from_batch(entropy, ops, false);
  const double self_imitation =
      options_.self_imitation < 0 ? policy_.self_imitation(task.has_equal_devices()) : options_.self_imitation;
  if (self_imitation > 0 && !task.elites().empty()) {
    const auto& elites = task.elites();
    const Elite& elite = elites[rng.below(static_cast<std::uint32_t>(elites.size()))];
    const auto devices = policy_.numbers_devices() ? renumbered(elite, task) : elite.device_of_op;
    follow(elite.order, devices, self_imitation / ops);
  }
  report.gradient_norm = finish(rate);
  for (std::size_t epoch = 1; epoch < policy_.epochs(); ++epoch) {
    policy_.begin(task.encoded(policy_));
    learn_from_batch(entropy, ops, true);
    finish(rate);
  }
  return report;
}

std::span<const DeviceId> Learner::renumbered(const Elite& elite, Task& task) {
  const auto kind = task.interchangeable();
  const std::size_t devices = kind.size();
  // How often an op that the elite has on one device is on another in the batch.
  std::vector<double> together(devices * devices, 0.0);
  for (const Episode& episode : batch_)
    for (OpId op = 0; op < elite.device_of_op.size(); ++op)
      together[elite.device_of_op[op] * devices + episode.device_of_op[op]] += 1;
  std::vector<DeviceId> number(devices);
  std::iota(number.begin(), number.end(), DeviceId{0});
  // Exchanging two at a time until nothing is gained ends, since what they have together grows.
  for (bool better = true; better;) {
    better = false;
    for (std::size_t a = 0; a < devices; ++a)
      for (std::size_t b = a + 1; b < devices; ++b) {
        if (kind[a] != kind[b]) continue;
        const double now = together[a * devices + number[a]] + together[b * devices + number[b]];
        if (together[a * devices + number[b]] + together[b * devices + number[a]] <= now) continue;
        std::swap(number[a], number[b]);
        better = true;
      }
  }
  renumbered_.clear();
  for (const DeviceId device : elite.device_of_op) renumbered_.push_back(number[device]);
  return renumbered_;
}

// Fills in what each episode of the batch, and each of its steps if it says its progress, is credited with.
void Learner::find_advantages(Seconds mean, double ops) {
  const auto batch = static_cast<double>(options_.batch);
  double variance = 0;
  for (const Seconds makespan : makespans_) variance += (makespan - mean) * (makespan - mean) / batch;
  // Equal makespans have no advantage over one another, whatever rounding says.
  const double scale = std::max(std::sqrt(variance) + 1e-4 * mean, std::numeric_limits<double>::min());
  const auto limited = [&](double advantage) {
    return std::clamp(advantage, -options_.largest_advantage, options_.largest_advantage);
  };
  for (std::size_t i = 0; i < options_.batch; ++i) {
    // The factor batch / (batch − 1) makes the mean of the others the baseline.
    advantages_[i] = limited((mean - makespans_[i]) / scale * batch / (batch - 1));
    step_advantages_[i].clear();
  }
  const std::size_t steps = batch_.front().progress.size();
  for (std::size_t step = 0; step + 1 < steps; ++step) {
    double mean_now = 0;
    for (const Episode& episode : batch_) mean_now += episode.progress[step] / batch;
    for (std::size_t i = 0; i < options_.batch; ++i) {
      // The return from here on is the makespan now minus the one at the end.
      const double now = (batch_[i].progress[step] - mean_now) / scale * batch / (batch - 1);
      step_advantages_[i].push_back((limited(advantages_[i] + now) - advantages_[i]) / (batch * ops));
    }
  }
}

void Learner::learn_from_batch(double entropy, double ops, bool again) {
  const double decisions = static_cast<double>(options_.batch) * ops;
  for (std::size_t i = 0; i < options_.batch; ++i) {
    if (again) policy_.replay(batch_[i]);
    policy_.backward(batch_[i], {.decisions = advantages_[i] / decisions,
                                 .entropy = entropy / decisions,
                                 .steps = step_advantages_[i],
                                 .clip = again ? options_.clip : 0});
  }
}

Placement Learner::best_of_batch() const {
  const auto best = std::min_element(makespans_.begin(), makespans_.end()) - makespans_.begin();
  return batch_[static_cast<std::size_t>(best)].placement();
}

}  // namespace doppler
