#include "doppler/learn/hsdag/hsdag_policy.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

// A pass keeps about sixty numbers per node, step and unit of width.
constexpr std::uint64_t kMostHsdagCells = std::uint64_t{1} << 21;

// hsdag+ keeps the device features of every op and device for each of its 64 episodes: 80 bytes.
constexpr std::uint64_t kMostHsdagPairs = std::uint64_t{1} << 17;

// What may follow the sizes in a description.
constexpr char kMetisOption[] = " clusters metis", kGroupsOption[] = " groups published",
               kBothOptions[] = " clusters metis groups published";

constexpr std::string_view kHsdagParts[] = {"plc"};

// What can be left out.
std::vector<FeatureGroup> features_of(HsdagVariant variant) {
  std::vector<FeatureGroup> features(kHsdagFeatures.begin(), kHsdagFeatures.end());
  if (variant == HsdagVariant::fine) features.push_back({kHsdagState, 0});
  return features;
}
std::vector<std::string> names_of(HsdagVariant variant) {
  const Blindness features(features_of(variant));
  return {features.names().begin(), features.names().end()};
}

// A hash of the parameters, never 0: noise that follows from it is the same in a training that was resumed.
std::uint64_t hash_of(std::span<const float> numbers) {
  std::uint64_t value = 0x9e3779b97f4a7c15;
  for (const float number : numbers) value = (value ^ std::bit_cast<std::uint32_t>(number)) * 0x100000001b3;
  return value | 1;
}

}  // namespace

// What was decided on each level that decides, coarse to fine, and how probable each device was.
struct HsdagPolicy::ChoiceTrace final : Episode::Trace {
  struct Level {
    std::size_t index = 0;
    std::vector<DeviceId> device;
    std::vector<float> probability;  // By node, then device.
    std::vector<float> features;     // By node, device and feature, where wishes count.
  };
  std::shared_ptr<const HsdagInput> input;
  const Parse* parse = nullptr;
  std::vector<Level> levels;
};

HsdagPolicy::HsdagPolicy(const HsdagShape& shape, Rng rng)
    : network_(shape, rng), blindness_(features_of(shape.variant)) {
  tape_.set_watch(&watch());
}

std::string_view HsdagPolicy::name() const { return fine() ? "hsdag+" : "hsdag"; }

std::string HsdagPolicy::architecture() const {
  const HsdagShape& shape = network_.shape();
  const char* const options = shape.metis ? (shape.groups == Colocation::published ? kBothOptions : kMetisOption)
                              : shape.groups == Colocation::published ? kGroupsOption
                                                                      : "";
  if (fine()) return fmt::format("hsdag+ width {}{}", shape.width, options);
  return fmt::format("{} width {} steps {}{}", shape.variant == HsdagVariant::flat ? "hsdag" : "hsdag-published",
                     shape.width, shape.steps, options);
}

std::vector<std::string> hsdag_features() { return names_of(HsdagVariant::flat); }
std::vector<std::string> hsdag_plus_features() { return names_of(HsdagVariant::fine); }

std::unique_ptr<Policy> make_hsdag_policy(const std::string& description, Rng rng) {
  HsdagShape shape{.steps = 1};
  const char* const text = description.c_str();
  int end = 0;
  if (std::sscanf(text, "hsdag+ width %zu%n", &shape.width, &end) == 1) {
    shape.variant = HsdagVariant::fine;
  } else if (std::sscanf(text, "hsdag-published width %zu steps %zu%n", &shape.width, &shape.steps, &end) == 2) {
    shape.variant = HsdagVariant::published;
  } else if (std::sscanf(text, "hsdag width %zu steps %zu%n", &shape.width, &shape.steps, &end) != 2) {
    return nullptr;
  }
  const std::string_view options = text + end;
  shape.metis = options == kMetisOption || options == kBothOptions;
  if (options == kGroupsOption || options == kBothOptions) shape.groups = Colocation::published;
  const bool fits = shape.width > 0 && shape.width <= 256 && shape.width % kBlock == 0;
  if (!fits || shape.steps == 0 || shape.steps > 64) return nullptr;
  return std::make_unique<HsdagPolicy>(shape, rng);
}

void HsdagPolicy::check_trainable(const std::string& where, const Problem& problem) const {
  const std::uint64_t cells = std::uint64_t{problem.op_count()} * network_.shape().width * network_.shape().steps;
  if (cells > kMostHsdagCells)
    throw InputError(fmt::format("{}: {} ops; required at most {} for {}, which keeps every op in memory", where,
                                 problem.op_count(), kMostHsdagCells / network_.shape().width / network_.shape().steps,
                                 architecture()));
  if (fine() && std::uint64_t{problem.op_count()} * problem.device_count() > kMostHsdagPairs)
    throw InputError(fmt::format("{}: {} ops on {} devices; required at most {} pairs for {}", where,
                                 problem.op_count(), problem.device_count(), kMostHsdagPairs, name()));
  if (problem.device_count() > HsdagNetwork<float>::kMostDevices)
    throw InputError(fmt::format("{}: {} devices; required at most {} for {}", where, problem.device_count(),
                                 HsdagNetwork<float>::kMostDevices, name()));
}

std::shared_ptr<const EncodedProblem> HsdagPolicy::encode(const Problem& problem) const {
  check_trainable(problem.graph().title(), problem);
  const HsdagShape& shape = network_.shape();
  const bool published = shape.variant == HsdagVariant::published;
  return std::make_shared<HsdagInput>(
      problem, HsdagInput::Options{
                   .rule = published ? Colocation::published : shape.groups, .metis = shape.metis, .state = fine()});
}

void HsdagPolicy::begin(std::shared_ptr<const EncodedProblem> problem) {
  input_ = std::dynamic_pointer_cast<const HsdagInput>(std::move(problem));
  DOPPLER_CHECK(input_ != nullptr, "a problem that another policy has encoded");
  if (fine()) state_.bind(input_->ops());
  tape_.clear();
  network_.clear();
  walk_.clear();
  features_.clear();
  acted_ = 0;
  noise_ = network_.shape().variant == HsdagVariant::published ? 0 : hash_of(parameters());
  take_step();
}

// Parses the problem once more, from the features that the last step left.
void HsdagPolicy::take_step() {
  std::vector<float>& features = features_.emplace_back();
  if (walk_.empty()) {
    features = network_.first_level(*input_).features;
  } else {
    features = features_[features_.size() - 2];
    const Parse& last = *walk_.back().parse;
    const auto output = tape_.value(last.output);
    for (std::uint32_t node = 0; node < last.levels.front().node_count; ++node) {
      std::uint32_t cluster = node;
      for (std::size_t i = 0; i + 1 < last.levels.size(); ++i) cluster = last.levels[i].parent[cluster];
      for (std::size_t i = 0; i < kHsdagColumns; ++i)
        features[node * kHsdagColumns + i] += output[cluster * kHsdagColumns + i];
    }
  }
  const Parse& parse = network_.parse(tape_, *input_, features, noise_ == 0 ? 0 : mix(noise_, walk_.size()) | 1);
  walk_.push_back({&parse, masks_of(parse)});
}

// A node may go where one of its members may: what a member may not is settled at the end.
std::vector<std::vector<char>> HsdagPolicy::masks_of(const Parse& parse) const {
  const DeviceId devices = input_->device_count();
  std::vector<std::vector<char>> masks(parse.levels.size());
  for (std::size_t i = 0; i < masks.size(); ++i) masks[i].resize(std::size_t{parse.levels[i].node_count} * devices);
  for (std::uint32_t unit = 0; unit < input_->first_op().size(); ++unit) {
    std::uint32_t node = fine() ? unit : input_->group_of_unit()[unit];
    for (std::size_t i = 0; i < masks.size(); ++i) {
      for (DeviceId device = 0; device < devices; ++device)
        masks[i][std::size_t{node} * devices + device] |= input_->allowed(unit)[device];
      if (i + 1 < masks.size()) node = parse.levels[i].parent[node];
    }
  }
  return masks;
}

HsdagPolicy::ChoiceTrace& HsdagPolicy::trace_of(Episode& episode) {
  if (dynamic_cast<ChoiceTrace*>(episode.trace.get()) == nullptr) episode.trace = std::make_unique<ChoiceTrace>();
  auto& trace = static_cast<ChoiceTrace&>(*episode.trace);
  trace.input = input_;
  return trace;
}

// Makes every decision of a step, coarse to fine, by decide(level, node, logits, mask, probability), and puts ops where
// their units are then.
template <typename Decide>
void HsdagPolicy::decide(Episode& episode, const Step& step, Decide decide) {
  ChoiceTrace& trace = trace_of(episode);
  trace.parse = step.parse;
  const Parse& parse = *step.parse;
  const DeviceId devices = input_->device_count();
  episode.log_probability = episode.entropy = 0;
  trace.levels.clear();
  std::vector<DeviceId> above, here;
  logits_.resize(devices);
  std::size_t decisions = 0;
  for (std::size_t i = parse.levels.size(); i-- > 0;) {
    const auto& level = parse.levels[i];
    here.resize(level.node_count);
    if (!level.decides) {
      for (std::uint32_t node = 0; node < level.node_count; ++node) here[node] = above[level.parent[node]];
      std::swap(above, here);
      continue;
    }
    auto& made = trace.levels.emplace_back();
    made.index = i;
    if (fine() && i == 0) {
      decisions += decide_units(episode, above, decide);
      break;
    }
    made.probability.resize(std::size_t{level.node_count} * devices);
    const auto values = tape_.value(level.logits);
    const float attraction = level.parent.empty() ? 0 : network_.parameters().values(network_.attraction())[0];
    for (std::uint32_t node = 0; node < level.node_count; ++node) {
      const std::size_t row = std::size_t{node} * devices;
      std::copy_n(values.data() + row, devices, logits_.data());
      if (!level.parent.empty()) logits_[above[level.parent[node]]] += attraction;
      const DeviceChoice choice = decide(i, node, logits_, std::span(step.masks[i]).subspan(row, devices),
                                         std::span(made.probability).subspan(row, devices));
      here[node] = choice.device;
      episode.log_probability += choice.log_probability;
      episode.entropy += choice.entropy;
      ++decisions;
    }
    made.device = here;
    std::swap(above, here);
  }
  episode.entropy /= static_cast<double>(std::max<std::size_t>(decisions, 1));
  if (fine()) return;
  here.resize(input_->first_op().size());  // `above` is by group now.
  for (std::uint32_t unit = 0; unit < here.size(); ++unit) here[unit] = above[input_->group_of_unit()[unit]];
  settle(input_->base(), here, episode);
}

// Decides on the units op by op, with what the state of the episode says of every device, and puts the ops there.
// Returns the number of decisions.
template <typename Decide>
std::size_t HsdagPolicy::decide_units(Episode& episode, std::span<const DeviceId> above, Decide decide) {
  auto& trace = static_cast<ChoiceTrace&>(*episode.trace);
  auto& made = trace.levels.back();
  const auto& level = trace.parse->levels.front();
  const std::size_t devices = input_->device_count(), row_size = devices * kDeviceFeatureCount;
  const auto values = tape_.value(level.logits), wishes = tape_.value(level.wishes);
  const float attraction = network_.parameters().values(network_.attraction())[0];
  made.device.resize(level.node_count);
  made.probability.resize(level.node_count * devices);
  if (episode.differentiable) made.features.resize(level.node_count * row_size);
  mask_.resize(devices);
  state_.reset();
  std::uint32_t next = 0;  // Units have their turns in the order of their first ops.
  for (const OpId op : input_->problem().graph().topological_order()) {
    state_.observe(op);
    const std::uint32_t unit = input_->base().unit_of_op()[op];
    if (unit == next) {
      ++next;
      const float* const wish = wishes.data() + unit * kDeviceFeatureCount;
      for (DeviceId device = 0; device < devices; ++device) {
        mask_[device] = state_.may_go(device);
        const float* const x = state_.features(device);
        logits_[device] = std::inner_product(x, x + kDeviceFeatureCount, wish, values[unit * devices + device]);
        if (episode.differentiable)
          std::copy_n(x, kDeviceFeatureCount, made.features.data() + unit * row_size + device * kDeviceFeatureCount);
      }
      logits_[above[level.parent[unit]]] += attraction;
      const DeviceChoice choice =
          decide(0, unit, logits_, mask_, std::span(made.probability).subspan(unit * devices, devices));
      made.device[unit] = choice.device;
      episode.log_probability += choice.log_probability;
      episode.entropy += choice.entropy;
    }
    // Of a unit whose device has become too full for the rest of it, the rest goes where it still can.
    DeviceId device = made.device[unit];
    if (!state_.may_go(device)) {
      device = 0;
      while (!state_.may_go(device)) ++device;
    }
    state_.place(op, device, [](OpId) {});
  }
  episode.device_of_op.assign(state_.device_of_op().begin(), state_.device_of_op().end());
  episode.order.clear();
  return level.node_count;
}

void HsdagPolicy::act(Episode& episode, Deciding deciding, Rng& rng) {
  DOPPLER_CHECK(input_ != nullptr, "an episode before begin()");
  const std::size_t step = acted_++ % network_.shape().steps;
  if (step == walk_.size()) take_step();
  decide(episode, walk_[step],
         [&](std::size_t, std::uint32_t, std::span<const float> logits, std::span<const char> mask,
             std::span<float> probability) { return choose(logits, mask, deciding, rng, probability); });
}

// A node's device is that of most of its members, by their time.
void HsdagPolicy::follow(Episode& episode, std::span<const OpId>, std::span<const DeviceId> device_of_op) {
  DOPPLER_CHECK(input_ != nullptr, "an episode before begin()");
  const Parse& parse = *walk_.front().parse;
  const DeviceId devices = input_->device_count();
  std::vector<std::vector<float>> share(parse.levels.size());
  for (std::size_t i = 0; i < share.size(); ++i) share[i].resize(std::size_t{parse.levels[i].node_count} * devices);
  for (std::uint32_t unit = 0; unit < input_->first_op().size(); ++unit) {
    const DeviceId device = device_of_op[input_->first_op()[unit]];
    const float seconds = input_->seconds()[std::size_t{unit} * devices + device];
    std::uint32_t node = fine() ? unit : input_->group_of_unit()[unit];
    for (std::size_t i = 0; i < share.size(); ++i) {
      share[i][std::size_t{node} * devices + device] += seconds + std::numeric_limits<float>::min();
      if (i + 1 < share.size()) node = parse.levels[i].parent[node];
    }
  }
  decide(episode, walk_.front(),
         [&](std::size_t level, std::uint32_t node, std::span<const float> logits, std::span<const char> mask,
             std::span<float> probability) {
           const auto row = std::span(share[level]).subspan(std::size_t{node} * devices, devices);
           DeviceId most = devices;  // The placement may ask for what is not allowed.
           for (DeviceId device = 0; device < devices; ++device)
             if (mask[device] && (most == devices || row[device] > row[most])) most = device;
           return doppler::follow(logits, mask, most, probability);
         });
}

void HsdagPolicy::imitate(Episode&, TeacherRule, Rng&) { throw InternalError("hsdag imitates placements, not rules"); }

void HsdagPolicy::backward(Episode& episode, const EpisodeLoss& loss) {
  auto* trace = dynamic_cast<ChoiceTrace*>(episode.trace.get());
  DOPPLER_CHECK(trace != nullptr && trace->input == input_, "backward of an episode on another problem");
  const DeviceId devices = input_->device_count();
  std::vector<float> row(devices);
  for (std::size_t i = 0; i < trace->levels.size(); ++i) {
    const auto& made = trace->levels[i];
    const auto& level = trace->parse->levels[made.index];
    const auto gradient = tape_.gradient(level.logits);
    for (std::uint32_t node = 0; node < level.node_count; ++node) {
      const std::size_t begin = std::size_t{node} * devices;
      std::fill(row.begin(), row.end(), 0.0F);
      add_gradient(std::span(made.probability).subspan(begin, devices), made.device[node], loss, row);
      for (DeviceId device = 0; device < devices; ++device) gradient[begin + device] += row[device];
      if (!level.parent.empty())
        network_.parameters().gradients(network_.attraction())[0] +=
            row[trace->levels[i - 1].device[level.parent[node]]];
      if (made.features.empty()) continue;
      float* const wish = tape_.gradient(level.wishes).data() + node * kDeviceFeatureCount;
      for (DeviceId device = 0; device < devices; ++device)
        for (std::size_t f = 0; f < kDeviceFeatureCount; ++f)
          wish[f] += row[device] * made.features[(begin + device) * kDeviceFeatureCount + f];
    }
  }
}

void HsdagPolicy::finish() {
  tape_.backward();
  blind(gradients());
}

// `numbers` are parameters or their gradients.
void HsdagPolicy::blind(std::span<float> numbers) const {
  blindness_.apply(numbers, network_.input_weights());
  const auto left_out = blindness_.left_out();
  if (std::find(left_out.begin(), left_out.end(), kHsdagState) == left_out.end()) return;
  for (const auto& slot : network_.wish_weights())
    std::ranges::fill(numbers.subspan(slot.begin, slot.rows * slot.columns), 0.0F);
}

// The nodes of every level above the units, with what is in them.
std::vector<std::vector<OpId>> HsdagPolicy::blocks() const {
  std::vector<std::vector<OpId>> result;
  if (walk_.empty() || !fine()) return result;
  const Parse& parse = *walk_.front().parse;
  std::vector<std::uint32_t> node_of_unit(input_->first_op().size());
  std::iota(node_of_unit.begin(), node_of_unit.end(), 0);
  for (std::size_t i = 0; i + 1 < parse.levels.size(); ++i) {
    const std::size_t begin = result.size();
    result.resize(begin + parse.levels[i + 1].node_count);
    for (std::uint32_t unit = 0; unit < node_of_unit.size(); ++unit) {
      node_of_unit[unit] = parse.levels[i].parent[node_of_unit[unit]];
      result[begin + node_of_unit[unit]].push_back(input_->first_op()[unit]);
    }
  }
  return result;
}

std::span<const std::string_view> HsdagPolicy::parts() const { return kHsdagParts; }
std::span<const std::string_view> HsdagPolicy::optional_parts() const { return blindness_.names(); }

void HsdagPolicy::leave_out(std::string_view part) {
  blindness_.add(part, *this);
  blind(parameters());
}

}  // namespace doppler
