#include "doppler/learn/train/learner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "doppler/base/error.h"

namespace doppler {

Learner::Learner(Policy& policy, const LearnerOptions& options)
    : policy_(policy),
      options_(options),
      adam_(policy.parameters().size()),
      batch_(options.batch),
      makespans_(options.batch) {
  DOPPLER_CHECK(options.batch >= 2, "batch {}: the others are the baseline", options.batch);
}

double Learner::finish(double rate) {
  policy_.finish();
  return adam_.step(policy_.parameters(), policy_.gradients(), rate, options_.largest_gradient);
}

void Learner::follow(const Elite& elite, double weight) {
  policy_.follow(imitation_, elite.order, elite.device_of_op);
  policy_.backward(imitation_, {.decisions = weight});
}

UpdateReport Learner::imitate(Task& task, TeacherRule teacher, double rate, Rng rng) {
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
  policy_.begin(task.encoded(policy_));
  const double ops = task.problem().op_count();
  follow(task.elites().front(), 1 / ops);
  UpdateReport report;
  report.entropy = imitation_.entropy;
  report.log_probability = imitation_.log_probability / ops;
  report.gradient_norm = finish(rate);
  return report;
}

UpdateReport Learner::reinforce(Task& task, double rate, double entropy, Rng rng) {
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
  double variance = 0;
  for (const Seconds makespan : makespans_) variance += (makespan - report.mean) * (makespan - report.mean) / batch;
  // Equal makespans have no advantage over one another, whatever rounding says.
  const double scale = std::max(std::sqrt(variance) + 1e-4 * report.mean, std::numeric_limits<double>::min());
  for (std::size_t i = 0; i < options_.batch; ++i) {
    // The factor batch / (batch − 1) makes the mean of the others the baseline.
    const double advantage = std::clamp((report.mean - makespans_[i]) / scale * batch / (batch - 1),
                                        -options_.largest_advantage, options_.largest_advantage);
    policy_.backward(batch_[i], {.decisions = advantage / (batch * ops), .entropy = entropy / (batch * ops)});
  }
  if (options_.self_imitation > 0 && !task.elites().empty()) {
    const auto& elites = task.elites();
    follow(elites[rng.below(static_cast<std::uint32_t>(elites.size()))], options_.self_imitation / ops);
  }
  report.gradient_norm = finish(rate);
  return report;
}

Placement Learner::best_of_batch() const {
  const auto best = std::min_element(makespans_.begin(), makespans_.end()) - makespans_.begin();
  return batch_[static_cast<std::size_t>(best)].placement();
}

}  // namespace doppler
