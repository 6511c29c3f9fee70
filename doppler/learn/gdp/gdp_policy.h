#pragma once

#include "doppler/learn/gdp/gdp_network.h"
#include "doppler/learn/policy.h"

namespace doppler {

// GDP (Zhou et al., 2019): one pass of a network over the whole graph gives every unit its probabilities of devices,
// and a placement is a draw from them, so that a batch of placements costs one pass. It decides on devices only, and
// learns several times from each batch (PPO). docs/learning.md says what of the published code is repaired here.
class GdpPolicy final : public Policy {
 public:
  GdpPolicy(const GdpShape& shape, Rng rng);

  std::string_view name() const override { return "gdp"; }
  std::string architecture() const override;
  std::span<float> parameters() override { return network_.parameters().values(); }
  std::span<const float> parameters() const override { return network_.parameters().values(); }
  std::span<float> gradients() override { return network_.parameters().gradients(); }
  void check_placeable(const std::string& where, const Problem& problem) const override {
    check_trainable(where, problem);
  }
  void check_trainable(const std::string& where, const Problem& problem) const override;
  std::shared_ptr<const EncodedProblem> encode(const Problem& problem) const override;
  void begin(std::shared_ptr<const EncodedProblem> problem) override;
  void act(Episode& episode, Deciding deciding, Rng& rng) override;
  void follow(Episode& episode, std::span<const OpId> order, std::span<const DeviceId> device_of_op) override;
  bool knows(TeacherRule) const override { return false; }
  void imitate(Episode& episode, TeacherRule teacher, Rng& rng) override;
  void replay(Episode& episode) override;
  void backward(Episode& episode, const EpisodeLoss& loss) override;
  void finish() override;
  bool numbers_devices() const override { return true; }
  std::size_t batch() const override { return 64; }
  std::size_t epochs() const override { return 4; }
  std::span<const std::string_view> parts() const override;
  std::span<const std::string_view> optional_parts() const override { return blindness_.names(); }
  void leave_out(std::string_view part) override;
  std::span<const std::string_view> left_out() const override { return blindness_.left_out(); }

 private:
  struct ChoiceTrace;

  ChoiceTrace& trace_of(Episode& episode) const;
  template <typename Decide>
  void decide(Episode& episode, Decide decide) const;

  GdpNetwork<float> network_;
  Blindness blindness_;
  std::shared_ptr<const GdpInput> input_;
  Tape<float> tape_;
  Tape<float>::Matrix logits_ = {};
};

// The names of what it sees.
std::vector<std::string> gdp_features();
// "gdp width W layers L segment S"; null if it is not that.
std::unique_ptr<Policy> make_gdp_policy(const std::string& description, Rng rng);

}  // namespace doppler
