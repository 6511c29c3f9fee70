#include "doppler/learn/train/learner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "doppler/base/error.h"

namespace doppler {

Learner::Learner(Network<float>& network, const LearnerOptions& options)
    : network_(network), options_(options), adam_(network.parameters().size()), makespans_(options.batch) {
  DOPPLER_CHECK(options.batch >= 2, "batch {}: the others are the baseline", options.batch);
  for (std::size_t i = 0; i <= options.batch; ++i) rollouts_.push_back(make_rollout(network, true));
  blind(network.parameters());
}

// A feature whose weights are 0 and stay 0 is as good as absent. `numbers`: parameters or their gradients.
void Learner::blind(std::span<float> numbers) const {
  if (options_.blind_to.empty()) return;
  const HeadShape shape = network_.head_shape();
  DOPPLER_CHECK(shape.hidden == 0 && shape.features == kDeviceFeatureCount, "features of another network");
  for (std::size_t feature = 0; feature < shape.features; ++feature)
    if (std::find(options_.blind_to.begin(), options_.blind_to.end(), kDeviceFeatures[feature]) !=
        options_.blind_to.end())
      std::fill_n(numbers.end() - static_cast<std::ptrdiff_t>(shape.size() - feature * shape.width), shape.width, 0.0F);
}

void Learner::prepare(const Task& task) {
  // A network that looks at every step is asked by its rollouts.
  if (!network_.per_step()) network_.embed(task.input(), {}, embedding_);
  gradient_.resize(task.input().op_count(), network_.head_shape().width);
  gradient_.fill_zero();
}

double Learner::finish(double rate) {
  if (!network_.per_step()) network_.backward(gradient_);
  blind(network_.gradients());
  return adam_.step(network_.parameters(), network_.gradients(), rate, options_.largest_gradient);
}

void Learner::follow(const Task& task, const Elite& elite, double weight) {
  Rollout<float>& rollout = *rollouts_.back();
  rollout.bind(task.input());
  rollout.follow(embedding_, network_.head(), elite.order, elite.device_of_op);
  rollout.backward(network_.head(), {options_.train_sel ? weight : 0, options_.train_plc ? weight : 0, 0}, gradient_,
                   network_.head_gradient());
}

UpdateReport Learner::imitate(const Task& task, TeacherRule teacher, double rate, Rng rng) {
  prepare(task);
  UpdateReport report;
  const double ops = task.input().op_count(), weight = 1 / (static_cast<double>(options_.batch) * ops);
  Rollout<float>& rollout = *rollouts_.back();
  rollout.bind(task.input());
  for (std::size_t i = 0; i < options_.batch; ++i) {
    rollout.imitate(embedding_, network_.head(), teacher, rng);
    rollout.backward(network_.head(), {options_.train_sel ? weight : 0, options_.train_plc ? weight : 0, 0}, gradient_,
                     network_.head_gradient());
    report.entropy += rollout.entropy() / static_cast<double>(options_.batch);
    report.sel_agreement += rollout.sel_agreement() / static_cast<double>(options_.batch);
    report.plc_agreement += rollout.plc_agreement() / static_cast<double>(options_.batch);
    report.log_probability += rollout.log_probability() * weight;
  }
  report.gradient_norm = finish(rate);
  return report;
}

UpdateReport Learner::follow_best(const Task& task, double rate) {
  prepare(task);
  follow(task, task.elites().front(), 1.0 / task.input().op_count());
  UpdateReport report;
  report.entropy = rollouts_.back()->entropy();
  report.log_probability = rollouts_.back()->log_probability() / task.input().op_count();
  report.gradient_norm = finish(rate);
  return report;
}

UpdateReport Learner::reinforce(Task& task, double rate, double entropy, Rng rng) {
  prepare(task);
  UpdateReport report;
  const auto batch = static_cast<double>(options_.batch);
  const double ops = task.input().op_count();
  report.best = Costs::kNever;
  for (std::size_t i = 0; i < options_.batch; ++i) {
    Rollout<float>& rollout = *rollouts_[i];
    rollout.bind(task.input());
    rollout.act(embedding_, network_.head(), Deciding::sampled, rng);
    makespans_[i] = task.evaluate(rollout.device_of_op(), rollout.order());
    report.mean += makespans_[i] / batch;
    report.best = std::min(report.best, makespans_[i]);
    report.entropy += rollout.entropy() / batch;
  }
  double variance = 0;
  for (const Seconds makespan : makespans_) variance += (makespan - report.mean) * (makespan - report.mean) / batch;
  // Equal makespans have no advantage over one another, whatever rounding says.
  const double scale = std::max(std::sqrt(variance) + 1e-4 * report.mean, std::numeric_limits<double>::min());
  for (std::size_t i = 0; i < options_.batch; ++i) {
    // batch / (batch − 1): the mean of the others is the baseline.
    const double advantage = std::clamp((report.mean - makespans_[i]) / scale * batch / (batch - 1),
                                        -options_.largest_advantage, options_.largest_advantage);
    const double weight = advantage / (batch * ops);
    rollouts_[i]->backward(network_.head(),
                           {options_.train_sel ? weight : 0, options_.train_plc ? weight : 0, entropy / (batch * ops)},
                           gradient_, network_.head_gradient());
  }
  if (options_.self_imitation > 0 && !task.elites().empty()) {
    const auto& elites = task.elites();
    follow(task, elites[rng.below(static_cast<std::uint32_t>(elites.size()))], options_.self_imitation / ops);
  }
  report.gradient_norm = finish(rate);
  return report;
}

Placement Learner::best_of_batch() const {
  const auto best = std::min_element(makespans_.begin(), makespans_.end()) - makespans_.begin();
  const Rollout<float>& rollout = *rollouts_[static_cast<std::size_t>(best)];
  Placement placement;
  placement.device_of_op.assign(rollout.device_of_op().begin(), rollout.device_of_op().end());
  placement.priority = ranks_from_order({rollout.order().begin(), rollout.order().end()});
  return placement;
}

}  // namespace doppler
