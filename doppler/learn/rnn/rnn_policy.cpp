#include "doppler/learn/rnn/rnn_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/learn/device_choice.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

// The features of every op are kept while those of the groups are made, less than a gigabyte of them.
constexpr OpId kMostOps = OpId{1} << 20;
constexpr std::string_view kRnnParts[] = {"plc"};

}  // namespace

// What was decided for each group, how probable each device was, and the pass that led there.
struct RnnPolicy::DecoderTrace final : Episode::Trace {
  DecoderTrace(bool with_gradients, Watch& watch) : tape(with_gradients) { tape.set_watch(&watch); }
  std::shared_ptr<const RnnInput> input;
  Tape<float> tape;
  std::vector<Tape<float>::Matrix> logits;
  std::vector<DeviceId> device;
  std::vector<float> probability;  // By group, then device.
};

RnnPolicy::RnnPolicy(const RnnShape& shape, Rng rng)
    : network_(shape, rng), blindness_(rnn_feature_groups(shape.groups)) {
  tape_.set_watch(&watch());
}

std::string RnnPolicy::architecture() const {
  return fmt::format("rnn width {} groups {}", network_.shape().width, network_.shape().groups);
}

std::vector<std::string> rnn_features() {
  const Blindness features(rnn_feature_groups(1));
  return {features.names().begin(), features.names().end()};
}

std::unique_ptr<Policy> make_rnn_policy(const std::string& description, Rng rng) {
  RnnShape shape;
  if (std::sscanf(description.c_str(), "rnn width %zu groups %zu", &shape.width, &shape.groups) != 2) return nullptr;
  const bool fits = shape.width > 0 && shape.width <= 256 && shape.width % kBlock == 0;
  if (!fits || shape.groups == 0 || shape.groups > 256) return nullptr;
  return std::make_unique<RnnPolicy>(shape, rng);
}

void RnnPolicy::check_trainable(const std::string& where, const Problem& problem) const {
  if (problem.op_count() > kMostOps)
    throw InputError(fmt::format("{}: {} ops; required at most {} for {}, which keeps the features of every op", where,
                                 problem.op_count(), kMostOps, name()));
  if (problem.device_count() > RnnNetwork<float>::kMostDevices)
    throw InputError(fmt::format("{}: {} devices; required at most {} for {}", where, problem.device_count(),
                                 RnnNetwork<float>::kMostDevices, name()));
}

std::shared_ptr<const EncodedProblem> RnnPolicy::encode(const Problem& problem) const {
  check_trainable(problem.graph().title(), problem);
  return std::make_shared<RnnInput>(problem, network_.shape().groups, watch());
}

void RnnPolicy::begin(std::shared_ptr<const EncodedProblem> problem) {
  input_ = std::dynamic_pointer_cast<const RnnInput>(std::move(problem));
  DOPPLER_CHECK(input_ != nullptr, "a problem that another policy has encoded");
  tape_.clear();
  encoding_ = network_.encode(tape_, *input_);
}

// Makes the decision on every group by decide(group, logits, mask, probability), and puts ops where their groups are
// then, or where they can be.
template <typename Decide>
void RnnPolicy::decide(Episode& episode, Decide decide) {
  DOPPLER_CHECK(input_ != nullptr, "an episode before begin()");
  if (dynamic_cast<DecoderTrace*>(episode.trace.get()) == nullptr)
    episode.trace = std::make_unique<DecoderTrace>(episode.differentiable, watch());
  auto& trace = static_cast<DecoderTrace&>(*episode.trace);
  const std::size_t groups = input_->group_count(), devices = input_->device_count();
  trace.input = input_;
  trace.tape.clear();
  trace.logits.resize(groups);
  trace.device.resize(groups);
  trace.probability.resize(groups * devices);
  episode.log_probability = episode.entropy = 0;
  network_.decode(trace.tape, tape_, encoding_, [&](std::size_t group, Tape<float>::Matrix logits) {
    const DeviceChoice choice =
        decide(group, trace.tape.value(logits), input_->allowed(static_cast<std::uint32_t>(group)),
               std::span(trace.probability).subspan(group * devices, devices));
    trace.logits[group] = logits;
    trace.device[group] = choice.device;
    episode.log_probability += choice.log_probability;
    episode.entropy += choice.entropy / static_cast<double>(groups);
    return choice.device;
  });
  std::vector<DeviceId> device_of_unit;
  for (const std::uint32_t group : input_->group_of_unit()) device_of_unit.push_back(trace.device[group]);
  settle(input_->units(), device_of_unit, episode);
}

void RnnPolicy::act(Episode& episode, Deciding deciding, Rng& rng) {
  decide(episode, [&](std::size_t, std::span<const float> logits, std::span<const char> mask,
                      std::span<float> probability) { return choose(logits, mask, deciding, rng, probability); });
}

// A group's device is that of most of its units, by their time, among those where it may be.
void RnnPolicy::follow(Episode& episode, std::span<const OpId>, std::span<const DeviceId> device_of_op) {
  DOPPLER_CHECK(input_ != nullptr, "an episode before begin()");
  const Units& units = input_->units();
  const DeviceId devices = input_->device_count();
  constexpr float kLeast = std::numeric_limits<float>::min();  // An op that takes no time counts too.
  std::vector<float> share(std::size_t{input_->group_count()} * devices);
  for (std::uint32_t unit = 0; unit < units.count(); ++unit) {
    const DeviceId device = device_of_op[units.first_op()[unit]];
    if (units.allowed(unit)[device])
      share[std::size_t{input_->group_of_unit()[unit]} * devices + device] += units.seconds(unit)[device] + kLeast;
  }
  decide(episode, [&](std::size_t group, std::span<const float> logits, std::span<const char> mask,
                      std::span<float> probability) {
    const auto row = std::span(share).subspan(group * devices, devices);
    auto most = std::ranges::max_element(row) - row.begin();
    if (row[static_cast<std::size_t>(most)] == 0) most = std::ranges::find(mask, 1) - mask.begin();
    return doppler::follow(logits, mask, static_cast<DeviceId>(most), probability);
  });
}

void RnnPolicy::imitate(Episode&, TeacherRule, Rng&) { throw InternalError("rnn imitates placements, not rules"); }

void RnnPolicy::backward(Episode& episode, const EpisodeLoss& loss) {
  auto* trace = dynamic_cast<DecoderTrace*>(episode.trace.get());
  DOPPLER_CHECK(trace != nullptr && trace->input == input_, "backward of an episode on another problem");
  const std::size_t devices = input_->device_count();
  for (std::size_t group = 0; group < trace->device.size(); ++group)
    add_gradient(std::span(trace->probability).subspan(group * devices, devices), trace->device[group], loss,
                 trace->tape.gradient(trace->logits[group]));
  trace->tape.backward();
}

void RnnPolicy::finish() {
  tape_.backward();
  blindness_.apply(gradients(), network_.input_weights());
}

std::span<const std::string_view> RnnPolicy::parts() const { return kRnnParts; }

void RnnPolicy::leave_out(std::string_view part) {
  blindness_.add(part, *this);
  blindness_.apply(parameters(), network_.input_weights());
}

}  // namespace doppler
