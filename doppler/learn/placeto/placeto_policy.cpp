#include "doppler/learn/placeto/placeto_policy.h"

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

// The sets of ancestors take a bit for every pair of ops, and a visit looks at every other op.
constexpr OpId kMostOps = 2048;
// A batch keeps about 2 kB for every op and device.
constexpr std::uint64_t kMostPairs = std::uint64_t{1} << 18;
// A backward pass through messages at every step keeps about 80 bytes per version and unit of width.
constexpr std::size_t kMostVersionCells = std::size_t{1} << 22;
// The backward pass looks at so many steps at a time, because each of them looks at every node.
constexpr std::size_t kStepsAtOnce = 64;

constexpr std::string_view kParts[] = {"plc"};
// The first three are the relations that have a part of their own; without credit every decision of an episode has the
// same weight.
constexpr std::string_view kOptional[] = {"ancestors", "descendants", "parallel", "credit"};

}  // namespace

// What was decided in each step, by node, and how probable each device was.
struct PlacetoPolicy::SweepTrace final : Episode::Trace {
  std::shared_ptr<const PlacetoInput> input;
  std::vector<DeviceId> chosen;
  std::vector<char> learns;        // There was a choice, and it was allowed.
  std::vector<float> probability;  // By node, then device.
  std::vector<float> features;     // By node, device and feature.

  std::span<float> probability_of(std::uint32_t node) {
    return std::span(probability).subspan(std::size_t{node} * input->device_count(), input->device_count());
  }
  std::span<float> features_of(std::uint32_t node) {
    const std::size_t size = input->device_count() * kPlacetoFeatureCount;
    return std::span(features).subspan(node * size, size);
  }
};

PlacetoPolicy::PlacetoPolicy(const PlacetoShape& shape, Rng rng) : network_(shape, rng) {
  for (Tape<float>* tape : {&tape_, &step_tape_, &episode_tape_, &head_tape_}) tape->set_watch(&watch());
}

std::string PlacetoPolicy::architecture() const {
  const PlacetoShape& shape = network_.shape();
  return fmt::format("placeto width {} rounds {} messages {}", shape.width, shape.rounds,
                     shape.per_step ? "step" : "episode");
}

std::vector<std::string> placeto_features() {
  std::vector<std::string> names;
  for (const std::string_view name : kNodeFeatures) names.emplace_back("node " + std::string(name));
  for (const std::string_view name : kDeviceFeatures) names.emplace_back("device " + std::string(name));
  for (const std::string_view name : kPlacetoDeviceFeatures) names.emplace_back("device " + std::string(name));
  return names;
}

std::unique_ptr<Policy> make_placeto_policy(const std::string& description, Rng rng) {
  PlacetoShape shape;
  char messages[16] = "";
  if (std::sscanf(description.c_str(), "placeto width %zu rounds %zu messages %15s", &shape.width, &shape.rounds,
                  messages) != 3)
    return nullptr;
  shape.per_step = std::string_view(messages) == "step";
  const bool fits = shape.width > 0 && shape.width <= 256 && shape.width % kBlock == 0;
  if (!fits || shape.rounds == 0 || shape.rounds > 16) return nullptr;
  return std::make_unique<PlacetoPolicy>(shape, rng);
}

PlacetoInput::Messages PlacetoPolicy::messages() const {
  const PlacetoShape& shape = network_.shape();
  return {shape.rounds, shape.per_step, kMostVersionCells / shape.width};
}

void PlacetoPolicy::check_placeable(const std::string& where, const Problem& problem) const {
  if (problem.op_count() > kMostOps)
    throw InputError(
        fmt::format("{}: {} ops; required at most {} for placeto, which knows for every two of them "
                    "whether one depends on the other",
                    where, problem.op_count(), kMostOps));
  if (std::uint64_t{problem.op_count()} * problem.device_count() > kMostPairs)
    throw InputError(fmt::format("{}: {} ops on {} devices; required at most {} pairs for placeto", where,
                                 problem.op_count(), problem.device_count(), kMostPairs));
}

void PlacetoPolicy::check_trainable(const std::string& where, const Problem& problem) const {
  check_placeable(where, problem);
  if (network_.shape().per_step) PlacetoInput(where, problem, messages());  // throws if there are too many versions
}

std::shared_ptr<const EncodedProblem> PlacetoPolicy::encode(const Problem& problem) const {
  check_placeable(problem.graph().title(), problem);
  return std::make_shared<PlacetoInput>(problem.graph().title(), problem, messages());
}

void PlacetoPolicy::begin(std::shared_ptr<const EncodedProblem> problem) {
  auto input = std::dynamic_pointer_cast<const PlacetoInput>(std::move(problem));
  DOPPLER_CHECK(input != nullptr, "a problem that another policy has encoded");
  if (input != input_) {
    input_ = std::move(input);
    objective_ = std::make_unique<ExactObjective>(input_->ops().problem());
    state_.bind(input_->ops());
  }
  tape_.clear();
  if (!network_.shape().per_step) {
    const auto both = network_.embed(tape_, *input_, {}, kept_);
    const Network::Matrix parts = tape_.sum(both[0], both[1]);
    tables_.assign(1, {tape_.row_count(parts), tape_.value(parts).data(), tape_.gradient(parts).data()});
    return;
  }
  step_tape_.clear();
  const auto nodes = network_.nodes(step_tape_, input_->features().data(), input_->node_count());
  nodes_.assign(step_tape_.value(nodes).begin(), step_tape_.value(nodes).end());
  tables_.clear();
  for (const Direction direction : kDirections) {
    auto& said = said_[static_cast<std::size_t>(direction)];
    const auto rounds = input_->rounds(direction);
    said.resize(rounds.size() + 1);
    const auto first = step_tape_.value(network_.say(step_tape_, direction, nodes));
    said[0].assign(first.begin(), first.end());
    for (std::size_t i = 0; i < rounds.size(); ++i) said[i + 1].resize(rounds[i].node.size() * network_.shape().width);
    tables_.push_back({rounds.back().node.size(), said.back().data(), nullptr});
  }
  stand_.begin(*input_);
  pass_messages(0);
}

// Writes the rows of a moment, in every round, for the placement as it is.
void PlacetoPolicy::pass_messages(std::size_t moment) {
  const std::size_t width = network_.shape().width;
  for (const Direction direction : kDirections) {
    auto& said = said_[static_cast<std::size_t>(direction)];
    const auto rounds = input_->rounds(direction);
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const PlacetoInput::Round& round = rounds[i];
      const std::uint32_t row = round.row_begin[moment], rows = round.row_begin[moment + 1] - row;
      const std::uint32_t edge = round.edge_begin[moment], edges = round.edge_begin[moment + 1] - edge;
      local_to_.resize(edges);
      for (std::uint32_t e = 0; e < edges; ++e) local_to_[e] = round.to[edge + e] - row;
      near_.resize(edges);
      Network::find_near(round, moment, stand_.device(), near_);
      step_tape_.clear();
      const auto nodes = step_tape_.constant(nodes_.size() / width, width, nodes_.data());
      const auto x = network_.hear(
          step_tape_, direction, step_tape_.rows(nodes, std::span(round.own).subspan(row, rows)),
          step_tape_.constant(said[i].size() / width, width, said[i].data()),
          {std::span(round.from).subspan(edge, edges), local_to_, std::span(round.share).subspan(edge, edges), near_});
      const auto result = i + 1 == rounds.size() ? x : network_.say(step_tape_, direction, x);
      std::ranges::copy(step_tape_.value(result), said[i + 1].begin() + static_cast<std::ptrdiff_t>(row * width));
    }
  }
}

// What is known of the devices for the op of a step, which the state has observed.
void PlacetoPolicy::write_features(std::uint32_t step) {
  const PolicyInput& ops = input_->ops();
  const OpId op = input_->op(step);
  const DeviceId devices = input_->device_count(), now = stand_.device()[step];
  std::ranges::fill(consumers_, 0.0F);
  float all = 0;
  for (const PolicyInput::Edge& edge : ops.consumers(op)) {
    consumers_[stand_.device()[input_->node_of_op(edge.op)]] += edge.weight;
    all += edge.weight;
  }
  const Seconds own = ops.problem().costs().op_time(op, now);
  const Seconds mean = (std::accumulate(load_.begin(), load_.end(), 0.0) - own) / devices;
  for (DeviceId device = 0; device < devices; ++device) {
    float* to =
        std::copy_n(state_.features(device), kDeviceFeatureCount, features_.data() + device * kPlacetoFeatureCount);
    const Seconds others = load_[device] - (device == now ? own : 0);
    *to++ = device == now ? 1.0F : 0.0F;
    *to++ = all > 0 ? consumers_[device] / all : 0.0F;
    *to++ = static_cast<float>(std::clamp(4 * (others - mean) / ops.horizon(), -2.0, 2.0));
  }
}

// Answers the question that was asked.
PlacetoPolicy::Network::Matrix PlacetoPolicy::logits(Tape<float>& tape, std::span<const Table> tables) {
  std::array<Network::Matrix, kBoth> parts;
  for (std::size_t i = 0; i < tables.size(); ++i)
    parts[i] = tape.parameter(tables[i].rows, network_.shape().width, tables[i].values, tables[i].gradients);
  return network_.logits(tape, std::span(parts).first(tables.size()), question_);
}

// Visits every node, which decide(step, logits, mask, probability) finds a device for; logits are empty where there is
// no choice. Simulates the makespan after every step if it is to watch.
template <typename Decide>
void PlacetoPolicy::sweep(Episode& episode, bool watch, Decide decide) {
  DOPPLER_CHECK(input_ != nullptr, "an episode before begin()");
  const std::uint32_t nodes = input_->node_count();
  const DeviceId devices = input_->device_count();
  if (dynamic_cast<SweepTrace*>(episode.trace.get()) == nullptr) episode.trace = std::make_unique<SweepTrace>();
  auto& trace = static_cast<SweepTrace&>(*episode.trace);
  trace.input = input_;
  trace.chosen.resize(nodes);
  trace.learns.resize(nodes);
  trace.probability.resize(std::size_t{nodes} * devices);
  trace.features.resize(std::size_t{nodes} * devices * kPlacetoFeatureCount);
  start_sweep(episode);
  if (watch) episode.progress.push_back(objective_->value(episode.device_of_op, {}));
  for (std::uint32_t step = 0; step < nodes; ++step) {
    const OpId op = input_->op(step);
    state_.observe(op);
    for (DeviceId device = 0; device < devices; ++device) mask_[device] = state_.may_go(device);
    std::span<const float> values;
    if (state_.choices() > 1) {
      write_features(step);
      question_.clear();
      question_.add(*input_, stand_, step, features_);
      step_tape_.clear();
      values = step_tape_.value(logits(step_tape_, tables_));
      std::ranges::copy(features_, trace.features_of(step).begin());
    }
    const DeviceChoice choice = decide(step, values, trace.probability_of(step));
    trace.chosen[step] = choice.device;
    trace.learns[step] = state_.choices() > 1 && mask_[choice.device];
    if (trace.learns[step]) {
      episode.log_probability += choice.log_probability;
      episode.entropy += choice.entropy / nodes;
    }
    state_.place(op, choice.device, [](OpId) {});
    const bool moved = take(episode, step, choice.device);
    if (watch)
      episode.progress.push_back(moved ? objective_->value(episode.device_of_op, {}) : episode.progress.back());
  }
}

// Puts every op where the episode begins.
void PlacetoPolicy::start_sweep(Episode& episode) {
  const DeviceId devices = input_->device_count();
  const Costs& costs = input_->ops().problem().costs();
  features_.resize(devices * kPlacetoFeatureCount);
  consumers_.resize(devices);
  mask_.resize(devices);
  load_.assign(devices, 0);
  episode.device_of_op.resize(input_->node_count());
  episode.order.clear();
  episode.progress.clear();
  episode.log_probability = episode.entropy = 0;
  for (std::uint32_t node = 0; node < input_->node_count(); ++node) {
    const DeviceId device = input_->start()[node];
    episode.device_of_op[input_->op(node)] = device;
    load_[device] += costs.op_time(input_->op(node), device);
  }
  state_.reset();
  stand_.begin(*input_);
}

// Takes a decision; returns whether the placement is another now.
bool PlacetoPolicy::take(Episode& episode, std::uint32_t step, DeviceId device) {
  const Costs& costs = input_->ops().problem().costs();
  bool moved = false;
  for (const std::uint32_t node : input_->moved_with(step)) {
    const OpId op = input_->op(node);
    DeviceId& now = episode.device_of_op[op];
    if (now == device) continue;
    load_[now] -= costs.op_time(op, now);
    load_[device] += costs.op_time(op, device);
    now = device;
    moved = true;
  }
  stand_.take(step, device);
  if (step + 1 < input_->moments()) pass_messages(step + 1);
  return moved;
}

void PlacetoPolicy::act(Episode& episode, Deciding deciding, Rng& rng) {
  const bool watch = episode.differentiable && !leaves_out("credit");
  sweep(episode, watch, [&](std::uint32_t, std::span<const float> logits, std::span<float> probability) {
    if (logits.empty()) return DeviceChoice{only_choice(), 0, 0};
    return choose(logits, mask_, deciding, rng, probability);
  });
}

void PlacetoPolicy::follow(Episode& episode, std::span<const OpId>, std::span<const DeviceId> device_of_op) {
  sweep(episode, false, [&](std::uint32_t step, std::span<const float> logits, std::span<float> probability) {
    const DeviceId device = device_of_op[input_->op(step)];
    if (logits.empty()) return DeviceChoice{device, 0, 0};
    return doppler::follow(logits, mask_, device, probability);
  });
}

DeviceId PlacetoPolicy::only_choice() const {
  return static_cast<DeviceId>(std::ranges::find(mask_, 1) - mask_.begin());
}

void PlacetoPolicy::imitate(Episode&, TeacherRule, Rng&) {
  throw InternalError("placeto imitates placements, not rules");
}

void PlacetoPolicy::backward(Episode& episode, const EpisodeLoss& loss) {
  auto* trace = dynamic_cast<SweepTrace*>(episode.trace.get());
  DOPPLER_CHECK(trace != nullptr && trace->input == input_, "backward of an episode on another problem");
  DOPPLER_CHECK(loss.steps.empty() || loss.steps.size() == trace->chosen.size(), "{} weights for {} steps",
                loss.steps.size(), trace->chosen.size());
  if (!network_.shape().per_step) return learn(*trace, loss, tables_);
  episode_tape_.clear();
  const auto parts = network_.embed(episode_tape_, *input_, trace->chosen, episode_kept_);
  std::array<Table, kBoth> tables;
  for (std::size_t i = 0; i < kBoth; ++i)
    tables[i] = {episode_tape_.row_count(parts[i]), episode_tape_.value(parts[i]).data(),
                 episode_tape_.gradient(parts[i]).data()};
  learn(*trace, loss, tables);
  episode_tape_.backward();
}

// Takes the same steps once more, and adds what the loss means for the head and for the parts.
void PlacetoPolicy::learn(SweepTrace& trace, const EpisodeLoss& loss, std::span<const Table> tables) {
  const DeviceId devices = input_->device_count();
  const auto answer = [&] {
    if (asked_.empty()) return;
    head_tape_.clear();
    const auto gradient = head_tape_.gradient(logits(head_tape_, tables));
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      const double credit = loss.steps.empty() ? 0 : loss.steps[asked_[i]];
      add_gradient(trace.probability_of(asked_[i]), trace.chosen[asked_[i]],
                   {.decisions = loss.decisions + credit, .entropy = loss.entropy},
                   gradient.subspan(i * devices, devices));
    }
    head_tape_.backward();
    asked_.clear();
    question_.clear();
  };
  question_.clear();
  asked_.clear();
  stand_.begin(*input_);
  for (std::uint32_t step = 0; step < input_->node_count(); ++step) {
    if (trace.learns[step]) {
      question_.add(*input_, stand_, step, trace.features_of(step));
      asked_.push_back(step);
    }
    if (asked_.size() == kStepsAtOnce) answer();
    stand_.take(step, trace.chosen[step]);
  }
  answer();
}

void PlacetoPolicy::finish() {
  tape_.backward();
  blind(gradients());
}

std::span<const std::string_view> PlacetoPolicy::parts() const { return kParts; }
std::span<const std::string_view> PlacetoPolicy::optional_parts() const { return kOptional; }

void PlacetoPolicy::leave_out(std::string_view part) {
  const auto found = std::ranges::find(kOptional, part);
  if (found == std::end(kOptional))
    throw InputError(fmt::format("--without: found '{}'; required of {} '{}' one of {}", part, name(), architecture(),
                                 fmt::join(kOptional, ", ")));
  if (!leaves_out(part)) left_out_.push_back(*found);
  blind(parameters());
}

bool PlacetoPolicy::leaves_out(std::string_view part) const {
  return std::ranges::find(left_out_, part) != left_out_.end();
}

// A relation whose weights are 0 and stay 0 is as good as absent. `numbers` are parameters or their gradients.
void PlacetoPolicy::blind(std::span<float> numbers) const {
  const std::size_t width = network_.shape().width;
  for (const Relation relation : {Relation::ancestor, Relation::descendant, Relation::parallel}) {
    if (!leaves_out(kOptional[static_cast<std::size_t>(relation)])) continue;
    for (const Direction direction : kDirections) {
      const auto weights = network_.part_weights(direction);
      for (std::size_t row = 0; row < weights.rows; ++row)
        std::ranges::fill(
            numbers.subspan(weights.begin + row * weights.columns + static_cast<std::size_t>(relation) * width, width),
            0.0F);
    }
  }
}

}  // namespace doppler
