#pragma once

#include <memory>
#include <string>
#include <vector>

#include "doppler/learn/doppler/network.h"
#include "doppler/learn/policy.h"
#include "doppler/learn/train/policy_file.h"

namespace doppler {

// DOPPLER (arXiv 2505.23131): SEL takes the next op among those whose inputs are placed, PLC its device. The network
// embeds the graph, once per begin() or, if it looks at the progress of the episode, before every step; a Rollout makes
// the decisions.
class DopplerPolicy final : public Policy {
 public:
  explicit DopplerPolicy(std::unique_ptr<Network<float>> network);

  std::string_view name() const override { return "doppler"; }
  std::string architecture() const override { return network_->architecture(); }
  std::span<float> parameters() override { return network_->parameters(); }
  std::span<const float> parameters() const override { return std::as_const(*network_).parameters(); }
  std::span<float> gradients() override { return network_->gradients(); }

  void check_trainable(const std::string& where, const Problem& problem) const override;
  std::shared_ptr<const EncodedProblem> encode(const Problem& problem) const override;
  void begin(std::shared_ptr<const EncodedProblem> problem) override;
  void act(Episode& episode, Deciding deciding, Rng& rng) override;
  void sharpen(double power) override { sharpness_ = power; }
  void follow(Episode& episode, std::span<const OpId> order, std::span<const DeviceId> device_of_op) override;
  bool knows(TeacherRule) const override { return true; }
  void imitate(Episode& episode, TeacherRule teacher, Rng& rng) override;
  void backward(Episode& episode, const EpisodeLoss& loss) override;
  void finish() override;

  std::span<const std::string_view> parts() const override;
  std::span<const std::string_view> optional_parts() const override;
  void leave_out(std::string_view part) override;
  std::span<const std::string_view> left_out() const override { return left_out_; }

 private:
  struct RolloutTrace;
  RolloutTrace& trace_of(Episode& episode);
  bool leaves_out(std::string_view part) const;
  void blind(std::span<float> numbers) const;

  std::unique_ptr<Network<float>> network_;
  std::shared_ptr<const PolicyInput> input_;  // The problem of the last begin().
  Embedding<float> embedding_, gradient_;
  double sharpness_ = 1;
  bool gathering_ = false;  // gradient_ is of the last begin().
  std::vector<std::string_view> left_out_;
};

// The names of the features of every architecture of DOPPLER: they share one list, so that one kind of file holds any.
std::vector<std::string> doppler_features();
// The policy with the network of gnn.h; null unless the text is "gnn width W layers L messages episode|step", or
// "joint width W layers L ready K", where one policy takes op and device together (joint_rollout.h).
std::unique_ptr<Policy> make_doppler_policy(const std::string& architecture, Rng rng);
// Files of before the last device features: their weights become 0. False unless nothing else is missing.
bool widen_doppler(const std::string& architecture, const std::vector<std::string>& known,
                   std::vector<float>& parameters);

// The policy that comes with the software: models/doppler.policy, in the program itself.
PolicyFile shipped_policy();

}  // namespace doppler
