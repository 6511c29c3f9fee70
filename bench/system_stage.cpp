// Stage III against other ways to spend real runs: system_stage [--emulated] GRAPH…
//
// The system is the machine p100x4 (jitter 0.1), but for something that the model does not know: device 0 takes 1.75
// times as long, the link between devices 0 and 1 takes four times as long, or the ops of the kind that takes the most
// time take 1.4 times as long on devices 2 and 3. All begin with the same placement, annealed in the model, and may run
// the system 60 times (stage III has 75, of which its final keeps 12):
//   stage III   the shipped policy, system stage alone
//   random      a few ops of the fastest known placement are moved at random, and what comes of it is run
//   anneal      annealing in the simulator that the same runs correct, what it finds is run
//   surrogate   a ridge regression of measured over predicted on loads of devices and links; of 200 random moves of the
//               three fastest known placements, the one of the greatest expected improvement is run
// Stage III first measures the answers of its policy and of the classical methods too, as it always does. A placement
// is run again, up to three times, only if it is promising (MeasuredObjective), whoever found it; what the rivals
// suggest is never refused. At any time a method recommends the placement of the least median of three runs. The table
// has how many runs it took until what is recommended is within 2 % of the best that any method recommends at its end
// (by the mean of 255 draws of the system itself), and how far it is from that at the end; medians of the seeds 0 to 4
// (and their range).
//
// A run is a simulation of the system with a draw of the jitter, and thus the same every time; with --emulated it is
// a run of emulated devices, which cannot emulate the third system.
#include "doppler/learn/train/system_stage.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "doppler/base/file.h"
#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"
#include "doppler/engine/emulated/emulated_executor.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/train/policy_file.h"
#include "doppler/machine/jitter.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/search/anneal.h"
#include "doppler/place/search/search_as_measured.h"

namespace doppler {
namespace {

constexpr double kSigma = 0.1;
constexpr std::uint64_t kRuns = 60, kStageRuns = 75, kSeeds = 5, kEvaluations = 4'000;
constexpr double kClose = 1.02;
constexpr std::size_t kRepeats = 3;

enum class Hidden { device, link, kind };
constexpr std::pair<Hidden, const char*> kSystems[] = {
    {Hidden::device, "device 0 × 1.75"}, {Hidden::link, "link 0-1 × 4"}, {Hidden::kind, "one kind × 1.4"}};

// The kind whose ops take the most time in the model.
std::string heaviest_kind(const Problem& model) {
  std::map<std::string, Seconds> total;
  for (OpId op = 0; op < model.op_count(); ++op) total[model.graph().kind(op)] += model.costs().op_time(op, 0);
  return std::max_element(total.begin(), total.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
}

Problem hidden_world(const Problem& model, Hidden hidden) {
  const Machine& machine = model.machine();
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < machine.device_count(); ++src) {
    devices.push_back(machine.device(src));
    if (hidden == Hidden::device && src == 0) devices.back().slowdown *= 1.75;
    if (hidden == Hidden::kind && src >= 2) {
      const double rate = devices.back().rates.front().flops_per_second;
      devices.back().rates.push_back({heaviest_kind(model), "*", rate / 1.4});
    }
    for (DeviceId dst = 0; dst < machine.device_count(); ++dst) {
      links.push_back(machine.link(src, dst));
      if (hidden == Hidden::link && src + dst == 1) links.back().latency *= 4, links.back().bytes_per_second /= 4;
    }
  }
  return model.on(Machine(machine.name(), devices, links, machine.link_model(), machine.jitter()));
}

// The system: counts its runs and keeps what they took.
class HiddenSystem final : public Executor {
 public:
  HiddenSystem(const Problem& model, Hidden hidden, std::uint64_t seed, bool emulated)
      : model_(model), world_(hidden_world(model, hidden)), seed_(seed) {
    if (!emulated) return;
    Rules rules = model.rules();
    rules.seed = seed;
    devices_ = std::make_unique<EmulatedExecutor>(model.with(rules));
    if (hidden == Hidden::device) devices_->slow_down(0, 1.75);
    if (hidden == Hidden::link) devices_->slow_down(0, 1, 4), devices_->slow_down(1, 0, 4);
  }
  std::string_view name() const override { return "hidden"; }
  const Problem& problem() const override { return model_; }
  Timeline run(const Placement& placement) override {
    constexpr std::uint64_t kStream = 0x73797374656d;
    const JitterDraw draw = JitterDraw::number(runs.size(), kSigma, seed_, kStream);
    const Timeline timeline =
        devices_ ? devices_->run(placement) : ExactObjective(world_.drawn(draw)).simulate(placement);
    runs.emplace_back(placement, timeline.makespan);
    return timeline;
  }
  const Problem& world() const { return world_; }

  std::vector<std::pair<Placement, Seconds>> runs;

 private:
  const Problem model_, world_;
  const std::uint64_t seed_;
  std::unique_ptr<EmulatedExecutor> devices_;
};

MethodOptions evaluations(std::uint64_t count, std::uint64_t seed) {
  MethodOptions options;
  options.budget = Budget::for_evaluations(count);
  options.seed = seed;
  return options;
}

Placement annealed(const Problem& model, std::uint64_t seed) {
  ExpectedObjective objective(model, kSigma, Draws{16, Draws::searched});
  const MethodOptions options = evaluations(kEvaluations, seed);
  return anneal_from(model, objective, options, {heft(model, objective, options).placement}).placement;
}

Placement moved(const Problem& problem, Placement placement, Rng& rng) {
  const std::uint32_t moves = 1 + rng.below(6);
  for (std::uint32_t i = 0; i < moves; ++i) {
    const OpId op = rng.below(problem.op_count());
    const auto devices = problem.devices(op);
    const DeviceId device = devices[rng.below(static_cast<std::uint32_t>(devices.size()))];
    for (const OpId member : problem.unit(op)) placement.device_of_op[member] = device;
  }
  return placement;
}

void stage_three(const Problem& model, const std::shared_ptr<HiddenSystem>& system, const Placement& start,
                 std::uint64_t seed) {
  const std::unique_ptr<Policy> policy = policy_from("shipped", shipped_policy());
  const std::unique_ptr<Task> simulated = make_task("graph", model, false);
  simulated->evaluate(start, Task::kSearch);
  SystemStageOptions options;
  options.runs = kStageRuns;
  options.seed = seed;
  options.search_evaluations = kEvaluations;
  SystemStage stage(*policy, *simulated, system, options);
  while (!stage.finished()) stage.step(Rng(mix(seed, stage.steps())));
}

// The others: each suggests what to run next, until there are no runs left or nothing is new.
class Rival {
 public:
  Rival(const Problem& model, std::shared_ptr<HiddenSystem> system, Placement start, std::uint64_t seed)
      : model_(model), system_(std::move(system)), objective_(system_, model), best_(std::move(start)), rng_(seed) {
    objective_.set_incumbent(best_);
    best_time_ = objective_.incumbent_time();
    tried_.push_back({best_, best_time_});
  }
  virtual ~Rival() = default;
  void search() {
    constexpr int kMostIdle = 8;  // suggestions in a row that are known
    for (int idle = 0; system_->runs.size() < kRuns && idle < kMostIdle; ++idle) {
      const Placement next = suggest();
      if (objective_.knows(next)) continue;
      idle = 0;
      const Seconds time = objective_.measure(next);
      tried_.push_back({next, time});
      if (time < best_time_) best_time_ = time, best_ = next;
    }
  }

 protected:
  virtual Placement suggest() = 0;

  const Problem model_;
  const std::shared_ptr<HiddenSystem> system_;
  MeasuredObjective objective_;
  Placement best_;
  Seconds best_time_ = 0;
  std::vector<MeasuredMakespan> tried_;
  Rng rng_;
};

class RandomRival final : public Rival {
  using Rival::Rival;
  Placement suggest() override { return moved(model_, best_, rng_); }
};

class AnnealRival final : public Rival {
  using Rival::Rival;
  Placement suggest() override {
    return search_as_measured(*objective_.ratios(), model_, {best_}, {}, evaluations(kEvaluations, rng_.bits()))
        .placement;
  }
};

class SurrogateRival final : public Rival {
 public:
  SurrogateRival(const Problem& model, std::shared_ptr<HiddenSystem> system, Placement start, std::uint64_t seed)
      : Rival(model, std::move(system), std::move(start), seed), predictor_(model, kSigma, Draws{16, Draws::searched}) {
    for (OpId op = 0; op < model.op_count(); ++op) work_ += model.costs().op_time(op, 0);
  }

 private:
  using Vector = std::vector<double>;

  // A constant, the load of every device, and that of every link, as shares of the work.
  Vector features(const Placement& placement) const {
    const std::size_t devices = model_.device_count();
    Vector x(1 + devices + devices * devices, 0);
    x[0] = 1;
    for (OpId op = 0; op < model_.op_count(); ++op) {
      const DeviceId src = placement.device_of_op[op];
      x[1 + src] += model_.costs().op_time(op, src) / work_;
      for (const TensorId tensor : model_.graph().outputs(op)) {
        std::vector<char> sent(devices, 0);
        for (const OpId consumer : model_.graph().consumers(tensor)) {
          const DeviceId dst = placement.device_of_op[consumer];
          if (dst == src || sent[dst]++) continue;
          x[1 + devices + src * devices + dst] += model_.costs().transfer_time(tensor, src, dst) / work_;
        }
      }
    }
    return x;
  }

  // Solves a·x = b for a symmetric positive definite matrix, by Cholesky.
  static Vector solve(std::vector<Vector> a, Vector b) {
    const std::size_t n = b.size();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = a[i][j];
        for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
        a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
      }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
      b[i] /= a[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
      b[i] /= a[i][i];
    }
    return b;
  }

  Placement suggest() override {
    constexpr double kRidge = 1e-3, kNoise = 0.02;
    constexpr std::size_t kCandidates = 200, kBestKnown = 3;
    for (; known_.size() < tried_.size();) {
      const MeasuredMakespan& run = tried_[known_.size()];
      known_.push_back(features(run.placement));
      target_.push_back(std::log(run.makespan / predictor_.value(run.placement)));
    }
    const std::size_t n = known_.front().size();
    std::vector<Vector> a(n, Vector(n, 0));
    Vector b(n, 0);
    for (std::size_t i = 0; i < n; ++i) a[i][i] = kRidge;
    for (std::size_t run = 0; run < known_.size(); ++run)
      for (std::size_t i = 0; i < n; ++i) {
        b[i] += known_[run][i] * target_[run];
        for (std::size_t j = 0; j < n; ++j) a[i][j] += known_[run][i] * known_[run][j];
      }
    const Vector weights = solve(a, b);
    std::vector<std::size_t> order(tried_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t i, std::size_t j) { return tried_[i].makespan < tried_[j].makespan; });
    order.resize(std::min(order.size(), kBestKnown));
    Placement chosen = best_;
    double most = -1;
    for (std::size_t i = 0; i < kCandidates; ++i) {
      const Placement& from = tried_[order[rng_.below(static_cast<std::uint32_t>(order.size()))]].placement;
      Placement candidate = moved(model_, from, rng_);
      const Vector x = features(candidate), spread = solve(a, x);
      double mean = std::log(predictor_.value(candidate)), variance = 0;
      for (std::size_t k = 0; k < n; ++k) mean += weights[k] * x[k], variance += spread[k] * x[k];
      const double deviation = kNoise * std::sqrt(1 + variance), z = (std::log(best_time_) - mean) / deviation;
      const double density = std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979);
      const double improvement = deviation * (z * std::erfc(-z / std::sqrt(2)) / 2 + density);
      if (improvement > most && !objective_.knows(candidate)) most = improvement, chosen = std::move(candidate);
    }
    return chosen;
  }

  ExpectedObjective predictor_;
  Seconds work_ = 0;
  std::vector<Vector> known_;
  Vector target_;
};

constexpr const char* kMethods[] = {"stage III", "random", "anneal", "surrogate"};

std::shared_ptr<HiddenSystem> run_method(std::size_t method, const Problem& model, Hidden hidden,
                                         const Placement& start, std::uint64_t seed, bool emulated) {
  const auto system = std::make_shared<HiddenSystem>(model, hidden, seed, emulated);
  if (method == 0) stage_three(model, system, start, seed);
  if (method == 1) RandomRival(model, system, start, seed).search();
  if (method == 2) AnnealRival(model, system, start, seed).search();
  if (method == 3) SurrogateRival(model, system, start, seed).search();
  return system;
}

// What is recommended after each run, by its true time; infinity while nothing is.
std::vector<Seconds> recommendations(const HiddenSystem& system) {
  ExpectedObjective truth(system.world(), kSigma, Draws{255, Draws::judged});
  std::map<std::vector<DeviceId>, std::vector<Seconds>> times;
  std::map<std::vector<DeviceId>, Seconds> true_times;
  std::vector<Seconds> result;
  for (std::size_t run = 0; run < std::min<std::size_t>(system.runs.size(), kRuns); ++run) {
    times[system.runs[run].first.device_of_op].push_back(system.runs[run].second);
    const std::vector<DeviceId>* recommended = nullptr;
    Seconds least = Costs::kNever;
    for (const auto& [devices, own] : times)
      if (own.size() >= kRepeats && median(own) < least) least = median(own), recommended = &devices;
    if (recommended != nullptr) {
      const auto [entry, added] = true_times.try_emplace(*recommended, 0);
      if (added) entry->second = truth.value(Placement{*recommended, {}, {}});
      result.push_back(entry->second);
    } else {
      result.push_back(Costs::kNever);
    }
  }
  return result;
}

std::string with_range(std::vector<double> values, int digits) {
  const double middle = median(values);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.{}f} ({:.{}f} … {:.{}f})", middle, digits, *low, digits, *high, digits);
}

void compare(const std::string& path, bool emulated) {
  const Machine machine = load_machine("p100x4").with_jitter(kSigma);
  const Problem model(parse_graph(path, read_file(path), {}).graph, machine);
  for (const auto& [hidden, name] : kSystems) {
    if (emulated && hidden == Hidden::kind) continue;
    std::vector<std::vector<double>> needed(std::size(kMethods)), behind(std::size(kMethods));
    std::vector<int> reached(std::size(kMethods), 0);
    std::vector<double> gain;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Placement start = annealed(model, seed);
      std::vector<std::vector<Seconds>> found;
      for (std::size_t method = 0; method < std::size(kMethods); ++method)
        found.push_back(recommendations(*run_method(method, model, hidden, start, seed, emulated)));
      Seconds best = Costs::kNever;
      for (const auto& one : found) best = std::min(best, one.back());
      gain.push_back(100 * (1 - best / found[1][kRepeats - 1]));
      for (std::size_t method = 0; method < found.size(); ++method) {
        const auto& one = found[method];
        const auto close = std::find_if(one.begin(), one.end(), [&](Seconds time) { return time <= kClose * best; });
        needed[method].push_back(close == one.end() ? kRuns : static_cast<double>(close - one.begin() + 1));
        reached[method] += close != one.end();
        behind[method].push_back(100 * (one.back() / best - 1));
      }
    }
    fmt::print("{}, {}: the best takes {} % less than the start\n", path, name, with_range(gain, 1));
    for (std::size_t method = 0; method < std::size(kMethods); ++method)
      fmt::print("  {:<10} runs {:<22} seeds that got there {}  behind at the end {} %\n", kMethods[method],
                 with_range(needed[method], 0), reached[method], with_range(behind[method], 1));
  }
}

}  // namespace
}  // namespace doppler

int main(int count, char** arguments) {
  bool emulated = false;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) == "--emulated")
      emulated = true;
    else
      doppler::compare(arguments[i], emulated);
  }
}
