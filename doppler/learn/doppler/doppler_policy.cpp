#include "doppler/learn/doppler/doppler_policy.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/learn/doppler/gnn.h"
#include "doppler/learn/doppler/step_rollout.h"

namespace doppler {

// The bytes of models/doppler.policy, so that the policy is wherever this library is. The build generates their source
// (cmake/embed_bytes.cmake).
extern const unsigned char kShippedPolicy[];
extern const std::size_t kShippedPolicySize;

namespace {

// A batch keeps about 4 kB per op and device.
constexpr std::uint64_t kMostCells = 500'000;
// A joint policy keeps as much for each of its candidates.
constexpr std::size_t kMostCandidates = 1024;
std::uint64_t most_cells(const Network<float>& network) {
  return kMostCells / std::max<std::size_t>(network.candidates(), 1);
}
bool is_trainable(const Network<float>& network, const Problem& problem) {
  return std::uint64_t{problem.op_count()} * problem.device_count() <= most_cells(network);
}

constexpr std::string_view kParts[] = {"sel", "plc"};
// What can be left out: affinities that PLC is shown, for networks that see them, and learning by either policy.
constexpr std::string_view kOptional[] = {"coparents", "siblings", "sel", "plc"};
constexpr std::string_view kJointParts[] = {"joint"};
constexpr std::string_view kJointOptional[] = {"coparents", "siblings"};

// The device features that belong to an affinity.
bool belongs(std::string_view feature, std::string_view affinity) { return feature.starts_with(affinity); }

}  // namespace

PolicyFile shipped_policy() {
  const auto* const begin = reinterpret_cast<const char*>(kShippedPolicy);
  return parse_policy("models/doppler.policy", std::string_view(begin, kShippedPolicySize));
}

std::vector<std::string> doppler_features() {
  std::vector<std::string> names;
  for (const std::string_view name : kNodeFeatures) names.emplace_back("node " + std::string(name));
  for (const std::string_view name : kDeviceFeatures) names.emplace_back("device " + std::string(name));
  for (const std::string_view name : kPaperDeviceFeatures) names.emplace_back("paper " + std::string(name));
  return names;
}

std::unique_ptr<Policy> make_doppler_policy(const std::string& architecture, Rng rng) {
  GnnShape shape;
  char messages[16] = "";
  const char* const text = architecture.c_str();
  if (std::sscanf(text, "gnn width %zu layers %zu messages %15s", &shape.width, &shape.layers, messages) == 3) {
    shape.per_step = std::string_view(messages) == "step";
  } else if (std::sscanf(text, "joint width %zu layers %zu ready %zu", &shape.width, &shape.layers,
                         &shape.candidates) != 3 ||
             shape.candidates == 0 || shape.candidates > kMostCandidates) {
    return nullptr;
  }
  if (shape.width == 0 || shape.width > 512 || shape.width % kBlock != 0 || shape.layers > 16) return nullptr;
  return std::make_unique<DopplerPolicy>(std::make_unique<Gnn<float>>(shape, rng));
}

bool widen_doppler(const std::string& architecture, const std::vector<std::string>& known,
                   std::vector<float>& parameters) {
  const std::vector<std::string> all = doppler_features();
  if (known.size() >= all.size()) return false;
  const std::size_t missing = all.size() - known.size();
  const auto last = all.begin() + static_cast<std::ptrdiff_t>(kNodeFeatureCount + kDeviceFeatureCount);
  if (missing >= kDeviceFeatureCount) return false;
  std::vector<std::string> without(all.begin(), last - static_cast<std::ptrdiff_t>(missing));
  without.insert(without.end(), last, all.end());
  const auto policy = make_doppler_policy(architecture, Rng(0));
  if (known != without || policy == nullptr) return false;
  // The rows of the features lie before the last row of the head, as wide as they are.
  const std::size_t width = (policy->parameters().size() - parameters.size()) / missing;
  if (parameters.size() + missing * width != policy->parameters().size() || width > parameters.size()) return false;
  parameters.insert(parameters.end() - static_cast<std::ptrdiff_t>(width), missing * width, 0.0F);
  return true;
}

// A rollout, bound to the problem that it keeps alive.
struct DopplerPolicy::RolloutTrace final : Episode::Trace {
  std::shared_ptr<const PolicyInput> input;
  std::unique_ptr<Rollout<float>> rollout;

  void write(Episode& episode) const {
    episode.device_of_op.assign(rollout->device_of_op().begin(), rollout->device_of_op().end());
    episode.order.assign(rollout->order().begin(), rollout->order().end());
    episode.log_probability = rollout->log_probability();
    episode.entropy = rollout->entropy();
  }
};

DopplerPolicy::DopplerPolicy(std::unique_ptr<Network<float>> network) : network_(std::move(network)) {
  network_->set_watch(&watch());
}

void DopplerPolicy::check_trainable(const std::string& where, const Problem& problem) const {
  if (!is_trainable(*network_, problem))
    throw InputError(
        fmt::format("{}: {} ops on {} devices; required at most {} pairs to train on; place it with a policy "
                    "trained on smaller graphs",
                    where, problem.op_count(), problem.device_count(), most_cells(*network_)));
}

std::shared_ptr<const EncodedProblem> DopplerPolicy::encode(const Problem& problem) const {
  return std::make_shared<PolicyInput>(problem, watch());
}

void DopplerPolicy::begin(std::shared_ptr<const EncodedProblem> problem) {
  input_ = std::dynamic_pointer_cast<const PolicyInput>(std::move(problem));
  DOPPLER_CHECK(input_ != nullptr, "a problem that another policy has encoded");
  gathering_ = false;
  network_->set_keeping(is_trainable(*network_, input_->problem()));  // Nothing else goes backward.
  // A network that looks at every step is asked by its rollouts.
  if (!network_->per_step()) network_->embed(*input_, {}, embedding_);
}

DopplerPolicy::RolloutTrace& DopplerPolicy::trace_of(Episode& episode) {
  DOPPLER_CHECK(input_ != nullptr, "an episode before begin()");
  auto* trace = dynamic_cast<RolloutTrace*>(episode.trace.get());
  if (trace == nullptr) {
    auto fresh = std::make_unique<RolloutTrace>();
    fresh->rollout = make_rollout(*network_, episode.differentiable);
    fresh->rollout->set_watch(&watch());
    trace = fresh.get();
    episode.trace = std::move(fresh);
  }
  if (trace->input != input_) {
    trace->input = input_;
    trace->rollout->bind(*input_);
  }
  return *trace;
}

void DopplerPolicy::act(Episode& episode, Deciding deciding, Rng& rng) {
  RolloutTrace& trace = trace_of(episode);
  trace.rollout->set_sharpness(episode.differentiable ? 1 : sharpness_);
  trace.rollout->act(embedding_, network_->head(), deciding, rng);
  trace.write(episode);
}

void DopplerPolicy::follow(Episode& episode, std::span<const OpId> order, std::span<const DeviceId> device_of_op) {
  RolloutTrace& trace = trace_of(episode);
  trace.rollout->follow(embedding_, network_->head(), order, device_of_op);
  trace.write(episode);
}

void DopplerPolicy::imitate(Episode& episode, TeacherRule teacher, Rng& rng) {
  RolloutTrace& trace = trace_of(episode);
  trace.rollout->imitate(embedding_, network_->head(), teacher, rng);
  trace.write(episode);
  episode.agreement.assign(1, trace.rollout->sel_agreement());
  if (network_->candidates() == 0) episode.agreement.push_back(trace.rollout->plc_agreement());
}

void DopplerPolicy::backward(Episode& episode, const EpisodeLoss& loss) {
  auto* trace = dynamic_cast<RolloutTrace*>(episode.trace.get());
  DOPPLER_CHECK(trace != nullptr && trace->input == input_, "backward of an episode on another problem");
  if (!gathering_) {
    gradient_.resize(input_->op_count(), network_->head_shape().width);
    gradient_.fill_zero();
    gathering_ = true;
  }
  const LossWeights weights = {.sel = leaves_out("sel") ? 0 : loss.decisions,
                               .plc = leaves_out("plc") ? 0 : loss.decisions,
                               .entropy = loss.entropy};
  trace->rollout->backward(network_->head(), weights, gradient_, network_->head_gradient());
}

void DopplerPolicy::finish() {
  if (!gathering_) return;
  if (!network_->per_step()) network_->backward(gradient_);
  gathering_ = false;
  blind(network_->gradients());
}

std::span<const std::string_view> DopplerPolicy::parts() const {
  if (network_->candidates() > 0) return kJointParts;
  return kParts;
}

std::span<const std::string_view> DopplerPolicy::optional_parts() const {
  if (network_->candidates() > 0) return kJointOptional;
  if (network_->device_features() == DeviceFeatureSet::improved) return kOptional;
  return kParts;
}

void DopplerPolicy::leave_out(std::string_view part) {
  const auto possible = optional_parts();
  const auto found = std::find(possible.begin(), possible.end(), part);
  if (found == possible.end())
    throw InputError(fmt::format("--without: found '{}'; required of {} '{}' one of {}", part, name(), architecture(),
                                 fmt::join(possible, ", ")));
  if (!leaves_out(part)) left_out_.push_back(*found);
  blind(network_->parameters());
}

bool DopplerPolicy::leaves_out(std::string_view part) const {
  return std::find(left_out_.begin(), left_out_.end(), part) != left_out_.end();
}

// A feature whose weights are 0 and stay 0 is as good as absent. `numbers` are parameters or their gradients.
void DopplerPolicy::blind(std::span<float> numbers) const {
  for (const std::string_view part : left_out_)
    for (std::size_t feature = 0; feature < kDeviceFeatureCount; ++feature)
      if (belongs(kDeviceFeatures[feature], part)) {
        const HeadShape shape = network_->head_shape();
        std::fill_n(numbers.end() - static_cast<std::ptrdiff_t>(shape.size() - feature * shape.width), shape.width,
                    0.0F);
      }
}

}  // namespace doppler
