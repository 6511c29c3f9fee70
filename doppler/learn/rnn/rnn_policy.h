#pragma once

#include "doppler/learn/policy.h"
#include "doppler/learn/rnn/rnn_network.h"

namespace doppler {

// The recurrent placer (Mirhoseini et al., 2017), the first that was learned: a sequence-to-sequence model with
// attention emits a device for each group of ops, one after the other, each knowing the last. It decides on devices
// only. docs/learning.md says what of the published code is repaired here.
class RnnPolicy final : public Policy {
 public:
  RnnPolicy(const RnnShape& shape, Rng rng);

  std::string_view name() const override { return "rnn"; }
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
  void backward(Episode& episode, const EpisodeLoss& loss) override;
  bool numbers_devices() const override { return true; }
  void finish() override;
  std::span<const std::string_view> parts() const override;
  std::span<const std::string_view> optional_parts() const override { return blindness_.names(); }
  void leave_out(std::string_view part) override;
  std::span<const std::string_view> left_out() const override { return blindness_.left_out(); }

 private:
  struct DecoderTrace;

  template <typename Decide>
  void decide(Episode& episode, Decide decide);

  RnnNetwork<float> network_;
  Blindness blindness_;
  std::shared_ptr<const RnnInput> input_;
  Tape<float> tape_;  // Of the encoder; every episode has its own for the decoder.
  RnnNetwork<float>::Encoding encoding_;
};

// The names of what it sees.
std::vector<std::string> rnn_features();
// "rnn width W groups G"; null if it is not that.
std::unique_ptr<Policy> make_rnn_policy(const std::string& description, Rng rng);

}  // namespace doppler
