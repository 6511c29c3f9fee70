#include "doppler/learn/gdp/gdp_policy.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/learn/device_choice.h"
#include "doppler/place/memory.h"

namespace doppler {
namespace {

// The numbers that a pass keeps, values and derivatives, stay below two gigabytes.
constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 29;
constexpr std::string_view kGdpParts[] = {"plc"};

// What a pass keeps for each unit: the matrices of each layer, and the weights of its attention. Fitted to the memory
// that passes over 10000 units took, 875 MB at width 64, two layers and segments of 64.
std::uint64_t numbers_per_unit(const GdpShape& shape) {
  return shape.layers * (150 * shape.width + 8 * shape.segment * shape.heads());
}

}  // namespace

// What was decided for each unit, and how probable each device was.
struct GdpPolicy::ChoiceTrace final : Episode::Trace {
  std::shared_ptr<const GdpInput> input;
  std::vector<DeviceId> device;
  std::vector<float> probability;  // By unit, then device; all 0 where somebody else decided what is not possible.
  std::vector<float> then;         // The probability of each decision when it was made; empty before replay().
  std::vector<char> mask;
};

GdpPolicy::GdpPolicy(const GdpShape& shape, Rng rng) : network_(shape, rng), blindness_(kUnitFeatures) {
  tape_.set_watch(&watch());
}

std::string GdpPolicy::architecture() const {
  const GdpShape& shape = network_.shape();
  return fmt::format("gdp width {} layers {} segment {}", shape.width, shape.layers, shape.segment);
}

std::vector<std::string> gdp_features() {
  const Blindness features(kUnitFeatures);
  return {features.names().begin(), features.names().end()};
}

std::unique_ptr<Policy> make_gdp_policy(const std::string& description, Rng rng) {
  GdpShape shape;
  if (std::sscanf(description.c_str(), "gdp width %zu layers %zu segment %zu", &shape.width, &shape.layers,
                  &shape.segment) != 3)
    return nullptr;
  const bool fits = shape.width > 0 && shape.width <= 256 && shape.width % kBlock == 0;
  if (!fits || shape.layers == 0 || shape.layers > 8 || shape.segment == 0 || shape.segment > 1024) return nullptr;
  return std::make_unique<GdpPolicy>(shape, rng);
}

void GdpPolicy::check_trainable(const std::string& where, const Problem& problem) const {
  const std::uint64_t most = kMostNumbers / numbers_per_unit(network_.shape());
  if (problem.op_count() > most)
    throw InputError(fmt::format("{}: {} ops; required at most {} for '{}', whose attention keeps every op in memory",
                                 where, problem.op_count(), most, architecture()));
  if (problem.device_count() > GdpNetwork<float>::kMostDevices)
    throw InputError(fmt::format("{}: {} devices; required at most {} for {}", where, problem.device_count(),
                                 GdpNetwork<float>::kMostDevices, name()));
}

std::shared_ptr<const EncodedProblem> GdpPolicy::encode(const Problem& problem) const {
  check_trainable(problem.graph().title(), problem);
  return std::make_shared<GdpInput>(problem);
}

void GdpPolicy::begin(std::shared_ptr<const EncodedProblem> problem) {
  input_ = std::dynamic_pointer_cast<const GdpInput>(std::move(problem));
  DOPPLER_CHECK(input_ != nullptr, "a problem that another policy has encoded");
  tape_.clear();
  logits_ = network_.logits(tape_, *input_);
}

GdpPolicy::ChoiceTrace& GdpPolicy::trace_of(Episode& episode) const {
  DOPPLER_CHECK(input_ != nullptr, "an episode before begin()");
  if (dynamic_cast<ChoiceTrace*>(episode.trace.get()) == nullptr) episode.trace = std::make_unique<ChoiceTrace>();
  auto& trace = static_cast<ChoiceTrace&>(*episode.trace);
  trace.input = input_;
  return trace;
}

// Makes the decision on every unit in topological order, by decide(unit, logits, mask, probability). The mask has the
// allowed devices with room for the unit, or the one that lacks least.
template <typename Decide>
void GdpPolicy::decide(Episode& episode, Decide decide) const {
  ChoiceTrace& trace = trace_of(episode);
  const Units& units = input_->units();
  const Problem& problem = units.problem();
  const DeviceId devices = units.device_count();
  StaticMemory memory(problem);
  trace.device.resize(units.count());
  trace.probability.resize(std::size_t{units.count()} * devices);
  episode.device_of_op.resize(problem.op_count());
  episode.order.clear();
  episode.log_probability = episode.entropy = 0;
  for (std::uint32_t unit = 0; unit < units.count(); ++unit) {
    const OpId op = units.first_op()[unit];
    trace.mask.assign(units.allowed(unit).begin(), units.allowed(unit).end());
    if (problem.memory_limited()) {
      for (const DeviceId device : problem.devices(op)) trace.mask[device] = memory.fits(op, device) ? 1 : 0;
      if (std::ranges::find(trace.mask, 1) == trace.mask.end()) trace.mask[memory.least_excess(op)] = 1;
    }
    const std::size_t row = std::size_t{unit} * devices;
    const DeviceChoice choice = decide(unit, tape_.value(logits_).subspan(row, devices), std::span(trace.mask),
                                       std::span(trace.probability).subspan(row, devices));
    memory.add(op, choice.device);
    trace.device[unit] = choice.device;
    episode.log_probability += choice.log_probability;
    episode.entropy += choice.entropy / units.count();
    for (const OpId member : problem.unit(op)) episode.device_of_op[member] = choice.device;
  }
}

void GdpPolicy::act(Episode& episode, Deciding deciding, Rng& rng) {
  trace_of(episode).then.clear();
  decide(episode, [&](std::uint32_t, std::span<const float> logits, std::span<const char> mask,
                      std::span<float> probability) { return choose(logits, mask, deciding, rng, probability); });
}

// Where a unit cannot go where it should, nothing is learned from it, and it goes where the policy likes it best.
void GdpPolicy::follow(Episode& episode, std::span<const OpId>, std::span<const DeviceId> device_of_op) {
  trace_of(episode).then.clear();
  decide(episode, [&](std::uint32_t unit, std::span<const float> logits, std::span<const char> mask,
                      std::span<float> probability) {
    const DeviceId device = device_of_op[input_->units().first_op()[unit]];
    if (mask[device]) return doppler::follow(logits, mask, device, probability);
    Rng nothing_random(0);
    const DeviceChoice instead = choose(logits, mask, Deciding::greedy, nothing_random, probability);
    std::ranges::fill(probability, 0.0F);
    return DeviceChoice{.device = instead.device};
  });
}

void GdpPolicy::imitate(Episode&, TeacherRule, Rng&) { throw InternalError("gdp imitates placements, not rules"); }

void GdpPolicy::replay(Episode& episode) {
  ChoiceTrace& trace = trace_of(episode);
  const DeviceId devices = input_->units().device_count();
  if (trace.then.empty())
    for (std::size_t unit = 0; unit < trace.device.size(); ++unit)
      trace.then.push_back(trace.probability[unit * devices + trace.device[unit]]);
  decide(episode,
         [&](std::uint32_t unit, std::span<const float> logits, std::span<const char> mask,
             std::span<float> probability) { return doppler::follow(logits, mask, trace.device[unit], probability); });
}

void GdpPolicy::backward(Episode& episode, const EpisodeLoss& loss) {
  const auto* trace = dynamic_cast<const ChoiceTrace*>(episode.trace.get());
  DOPPLER_CHECK(trace != nullptr && trace->input == input_, "backward of an episode on another problem");
  const DeviceId devices = input_->units().device_count();
  const auto gradient = tape_.gradient(logits_);
  for (std::size_t unit = 0; unit < trace->device.size(); ++unit) {
    const std::size_t row = unit * devices;
    const auto probability = std::span(trace->probability).subspan(row, devices);
    EpisodeLoss weights = loss;
    if (loss.clip > 0 && !trace->then.empty())
      weights.decisions = clipped_weight(
          loss.decisions, static_cast<double>(probability[trace->device[unit]] / trace->then[unit]), loss.clip);
    add_gradient(probability, trace->device[unit], weights, gradient.subspan(row, devices));
  }
}

void GdpPolicy::finish() {
  tape_.backward();
  blindness_.apply(gradients(), network_.input_weights());
}

std::span<const std::string_view> GdpPolicy::parts() const { return kGdpParts; }

void GdpPolicy::leave_out(std::string_view part) {
  blindness_.add(part, *this);
  blindness_.apply(parameters(), network_.input_weights());
}

}  // namespace doppler
