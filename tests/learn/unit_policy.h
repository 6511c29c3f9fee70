#pragma once

// What every policy promises that decides on units of ops and has no order, as checks that the test of each one calls
// with its description.

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/trainer.h"
#include "doppler/learn/train/zero_shot.h"
#include "tests/learn/support.h"
#include "tests/support/sanitized.h"

namespace doppler::test {

// Hands many placements of an untrained policy to `check`.
template <typename Check>
void sample_placements(const std::string& description, const Problem& problem, Check check) {
  const auto policy = make_policy(description, Rng(1));
  policy->begin(policy->encode(problem));
  Episode episode;
  Rng rng(2);
  for (int i = 0; i < fewer_if_sanitized(1000); ++i) {
    policy->act(episode, Deciding::sampled, rng);
    verify(problem, episode.placement());  // throws
    check(episode.device_of_op);
    if (testing::Test::HasFailure()) return;
  }
}

inline std::vector<float> taken_gradients(Policy& policy) {
  const std::vector<float> result(policy.gradients().begin(), policy.gradients().end());
  std::ranges::fill(policy.gradients(), 0.0F);
  return result;
}

inline void expect_the_same_for_the_same_seed(const std::string& description) {
  const auto world = mixed_world();
  const auto policy = make_policy(description, Rng(1)), again = make_policy(description, Rng(1));
  EXPECT_TRUE(std::ranges::equal(policy->parameters(), again->parameters()));
  policy->begin(policy->encode(*world));
  again->begin(again->encode(*world));
  Episode first, second(false);
  Rng a(3), b(3);
  for (const Deciding deciding : {Deciding::sampled, Deciding::greedy, Deciding::sampled}) {
    policy->act(first, deciding, a);
    again->act(second, deciding, b);
    EXPECT_EQ(first.device_of_op, second.device_of_op);
    EXPECT_TRUE(first.order.empty());
    EXPECT_LT(first.log_probability, 0);
    EXPECT_GT(first.entropy, 0);
  }
}

inline void expect_own_decisions_followed(const std::string& description) {
  const auto world = mixed_world();
  const auto policy = make_policy(description, Rng(1));
  Episode acted, followed;
  Rng rng(3);
  policy->begin(policy->encode(*world));
  policy->act(acted, Deciding::sampled, rng);
  policy->follow(followed, acted.order, acted.device_of_op);
  EXPECT_EQ(acted.device_of_op, followed.device_of_op);
  EXPECT_EQ(acted.log_probability, followed.log_probability);
  EXPECT_EQ(acted.entropy, followed.entropy);
  policy->backward(acted, {.decisions = 1, .entropy = 0.5});
  policy->finish();
  const std::vector<float> of_acted = taken_gradients(*policy);
  EXPECT_GT(*std::ranges::max_element(of_acted), 0);
  policy->begin(policy->encode(*world));
  policy->follow(followed, acted.order, acted.device_of_op);
  policy->backward(followed, {.decisions = 1, .entropy = 0.5});
  policy->finish();
  EXPECT_EQ(of_acted, taken_gradients(*policy));
}

// Along the gradient itself the slope of the loss is its squared norm. Single precision leaves about two digits of a
// difference.
inline void expect_gradient_of_log_probability(const std::string& description) {
  const auto world = mixed_world();
  const auto policy = make_policy(description, Rng(1));
  const auto encoded = policy->encode(*world);
  policy->begin(encoded);
  Episode episode;
  Rng rng(3);
  policy->act(episode, Deciding::sampled, rng);
  const std::vector<DeviceId> devices = episode.device_of_op;
  policy->follow(episode, {}, devices);
  policy->backward(episode, {.decisions = 1});
  policy->finish();
  const std::vector<float> gradient = taken_gradients(*policy);
  double square = 0;
  for (const float g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
  const std::vector<float> kept(policy->parameters().begin(), policy->parameters().end());
  const auto loss_at = [&](double step) {
    for (std::size_t i = 0; i < kept.size(); ++i)
      policy->parameters()[i] = kept[i] + static_cast<float>(step * static_cast<double>(gradient[i]));
    policy->begin(encoded);
    policy->follow(episode, {}, devices);
    return -episode.log_probability;
  };
  const double step = 1e-3 / std::sqrt(square);
  EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), square, 0.02 * square);
}

inline std::unique_ptr<Task> layered_task() {
  return make_task("layered",
                   Problem(generate_layered({.ops = 30, .width = 5, .degree = 2, .seed = 3, .costs = {}}),
                           load_machine("p100x4"), Rules{}),
                   false);
}

// Six pairs of ops, a second each, whose tensor takes three to move, on three devices: two pairs to a device take four
// seconds, and nothing takes less, because there are twelve seconds of work. Where every op goes anywhere it is two
// thirds of the tensors that move.
inline std::unique_ptr<Task> pairs_task() {
  std::vector<Edge> edges;
  for (OpId pair = 0; pair < 6; ++pair) edges.push_back({2 * pair, 2 * pair + 1, 3});
  return make_task("pairs", Problem(graph_of(std::vector<Seconds>(12, 1), edges), machine_of({"a", "a", "a"})), false);
}

// Neither search nor elites help: this is what the policy learns by itself.
inline void expect_learning(const std::string& description, std::uint64_t updates, double largest_mean) {
  const auto policy = make_policy(description, Rng(1));
  TrainingOptions options;
  options.stages = {Stage::simulation};
  options.updates = fewer_if_sanitized(updates);
  options.rate = options.last_rate = 1e-3;
  options.expert_share = 0;
  options.learner.batch = 32;
  options.learner.self_imitation = 0;
  Trainer trainer(*policy, options);
  Task& task = trainer.add(pairs_task());
  double first = 0, last = 0;
  while (!trainer.finished()) {
    last = trainer.step().result.mean;
    if (first == 0) first = last;
  }
  if (kSanitized) return;
  EXPECT_GT(first, 5.5);
  EXPECT_LT(last, largest_mean);
  EXPECT_EQ(task.best_makespan(), 4);
}

// Returns the text of the InputError that both check_trainable() and encode() throw.
inline std::string refusal_of(const std::string& description, const Problem& problem) {
  const auto policy = make_policy(description, Rng(1));
  EXPECT_THROW(policy->encode(problem), InputError);
  try {
    policy->check_trainable("here", problem);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace doppler::test
