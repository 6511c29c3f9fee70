#pragma once

#include "doppler/learn/device_choice.h"
#include "doppler/learn/placeto/placeto_network.h"
#include "doppler/learn/policy.h"
#include "doppler/objective.h"

namespace doppler {

// Placeto (Addanki et al., NeurIPS 2019): improves a complete placement, that of list scheduling, in one sweep: every
// op is visited once, in topological order, and given a device anew. The makespan after every step is simulated, and a
// decision is credited with what becomes of it. It decides on devices only. docs/learning.md says what differs from the
// published code and why.
class PlacetoPolicy final : public Policy {
 public:
  PlacetoPolicy(const PlacetoShape& shape, Rng rng);

  std::string_view name() const override { return "placeto"; }
  std::string architecture() const override;
  std::span<float> parameters() override { return network_.parameters().values(); }
  std::span<const float> parameters() const override { return network_.parameters().values(); }
  std::span<float> gradients() override { return network_.parameters().gradients(); }
  void check_placeable(const std::string& where, const Problem& problem) const override;
  void check_trainable(const std::string& where, const Problem& problem) const override;
  std::shared_ptr<const EncodedProblem> encode(const Problem& problem) const override;
  void begin(std::shared_ptr<const EncodedProblem> problem) override;
  void act(Episode& episode, Deciding deciding, Rng& rng) override;
  void follow(Episode& episode, std::span<const OpId> order, std::span<const DeviceId> device_of_op) override;
  bool knows(TeacherRule) const override { return false; }
  void imitate(Episode& episode, TeacherRule teacher, Rng& rng) override;
  void backward(Episode& episode, const EpisodeLoss& loss) override;
  void finish() override;
  std::span<const std::string_view> parts() const override;
  std::span<const std::string_view> optional_parts() const override;
  void leave_out(std::string_view part) override;
  std::span<const std::string_view> left_out() const override { return left_out_; }

 private:
  struct SweepTrace;
  using Network = PlacetoNetwork<float>;
  static constexpr std::size_t kBoth = kDirections.size();
  // The parts of all versions of all nodes in a direction, or in both, and their gradients.
  struct Table {
    std::size_t rows = 0;
    const float* values = nullptr;
    float* gradients = nullptr;
  };

  PlacetoInput::Messages messages() const;
  void pass_messages(std::size_t moment);
  template <typename Decide>
  void sweep(Episode& episode, bool watch, Decide decide);
  void start_sweep(Episode& episode);
  void write_features(std::uint32_t step);
  DeviceId only_choice() const;
  bool take(Episode& episode, std::uint32_t step, DeviceId device);
  Network::Matrix logits(Tape<float>& tape, std::span<const Table> tables);
  void learn(SweepTrace& trace, const EpisodeLoss& loss, std::span<const Table> tables);
  void blind(std::span<float> numbers) const;
  bool leaves_out(std::string_view part) const;

  Network network_;
  std::vector<std::string_view> left_out_;
  std::shared_ptr<const PlacetoInput> input_;
  std::unique_ptr<ExactObjective> objective_;  // Of the problem of the last begin().

  // What was computed since begin(). Messages once: the parts lie on the tape. Messages at every step: what nodes say
  // before and after every round, and instead of the last their parts; rows of later moments are written by episodes.
  Tape<float> tape_;
  Network::Kept kept_;
  std::vector<Table> tables_;
  std::vector<float> nodes_;
  std::array<std::vector<std::vector<float>>, kBoth> said_;

  // The episode at hand.
  EpisodeState state_{DeviceFeatureSet::improved};
  PlacetoStand stand_;
  Network::Question question_;
  std::vector<float> features_;   // By device and feature.
  std::vector<Seconds> load_;     // By device, in the placement as it is.
  std::vector<float> consumers_;  // By device: the transfer time of those of the op.
  std::vector<char> mask_;
  std::vector<std::uint32_t> local_to_;
  std::vector<float> near_;
  Tape<float> step_tape_{false};

  // The backward pass.
  Tape<float> episode_tape_, head_tape_;
  Network::Kept episode_kept_;
  std::vector<std::uint32_t> asked_;  // The steps of the question.
};

// The names of what it sees.
std::vector<std::string> placeto_features();
// "placeto width W rounds K messages episode|step"; null if it is not of this form.
std::unique_ptr<Policy> make_placeto_policy(const std::string& description, Rng rng);

}  // namespace doppler
