#pragma once

#include "doppler/learn/device_choice.h"
#include "doppler/learn/doppler/episode_state.h"
#include "doppler/learn/hsdag/hsdag_network.h"
#include "doppler/learn/policy.h"

namespace doppler {

// HSDAG (Duan et al., NeurIPS 2024): a network merges a graph into clusters whose number nobody presets, and each
// cluster gets a device. It decides on devices only. docs/learning.md says what of the published code is repaired here.
//
// A walk of `steps` placements begins with every begin(): after each of them the embedding of a cluster is added to the
// features of its members, and the next placement is made from those. Every placement has its own reward.
class HsdagPolicy final : public Policy {
 public:
  HsdagPolicy(const HsdagShape& shape, Rng rng);

  std::string_view name() const override;
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
  void finish() override;
  std::size_t batch() const override { return fine() ? 64 : 16; }
  // Where devices are equal, hsdag+ learns worse with elites: each of them splits the graph another way, and what its
  // clusters are told by one is wrong by the next (docs/learning.md).
  double self_imitation(bool equal_devices) const override { return fine() && equal_devices ? 0 : 0.1; }
  bool numbers_devices() const override { return true; }
  std::vector<std::vector<OpId>> blocks() const override;
  std::span<const std::string_view> parts() const override;
  std::span<const std::string_view> optional_parts() const override;
  void leave_out(std::string_view part) override;
  std::span<const std::string_view> left_out() const override { return blindness_.left_out(); }

 private:
  struct ChoiceTrace;
  using Parse = HsdagNetwork<float>::Parse;

  // One step of a walk: a parse, and by level, node and device whether a member of the node may go there.
  struct Step {
    const Parse* parse;
    std::vector<std::vector<char>> masks;
  };

  void take_step();
  std::vector<std::vector<char>> masks_of(const Parse& parse) const;
  ChoiceTrace& trace_of(Episode& episode);
  template <typename Decide>
  void decide(Episode& episode, const Step& step, Decide decide);
  template <typename Decide>
  std::size_t decide_units(Episode& episode, std::span<const DeviceId> above, Decide decide);
  void blind(std::span<float> numbers) const;
  bool fine() const { return network_.shape().variant == HsdagVariant::fine; }

  HsdagNetwork<float> network_;
  Blindness blindness_;
  std::shared_ptr<const HsdagInput> input_;
  EpisodeState state_{DeviceFeatureSet::improved};  // Of the fine variant.
  std::vector<char> mask_;
  std::vector<float> logits_;
  Tape<float> tape_;
  std::vector<Step> walk_;                   // The steps that were taken since begin().
  std::deque<std::vector<float>> features_;  // The features of each of them.
  std::size_t acted_ = 0;                    // The placements since begin().
  std::uint64_t noise_ = 0;
};

// The names of what hsdag sees, and hsdag+.
std::vector<std::string> hsdag_features();
std::vector<std::string> hsdag_plus_features();
// "hsdag width W steps T", "hsdag+ width W" or "hsdag-published width W steps T", where " clusters metis" and then
// " groups published" may follow; null if it is none of these.
std::unique_ptr<Policy> make_hsdag_policy(const std::string& description, Rng rng);

}  // namespace doppler
