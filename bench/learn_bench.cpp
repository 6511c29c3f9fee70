// CPU milliseconds of the learner. An episode is one sampled rollout with its simulation and its share of the update.
// Architectures are compared in one run, update against update, because the speed of the machine changes from run to
// run: `times_default` is the ratio to the default network on the same graph.

#include <ctime>
#include <functional>

#include <benchmark/benchmark.h>

#include "bench/bench_graphs.h"
#include "bench/bench_main.h"
#include "doppler/learn/doppler/gnn.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/learner.h"
#include "doppler/sim/simulator.h"

namespace doppler::bench {
namespace {

enum class Kind { once_per_episode, every_step, paper };

struct Training {
  Training(const Graph& graph, const Machine& machine)
      : task("bench", std::make_unique<ExactObjective>(Problem(graph, machine))) {}
  Task task;
};

double cpu_milliseconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

std::string architecture_of(Kind kind) {
  if (kind == Kind::paper) return "paper";
  return kind == Kind::every_step ? "gnn width 32 layers 2 messages step" : "gnn width 32 layers 2 messages episode";
}

// Updates of one policy, and the time that they took per episode.
class Trainee {
 public:
  // Batch 0: as many episodes as the policy likes.
  Trainee(const Graph& graph, const Machine& machine, const std::string& architecture, std::size_t batch)
      : training_(graph, machine),
        policy_(make_policy(architecture, Rng(1))),
        options_{.batch = batch > 0 ? batch : policy_->batch()},
        learner_(*policy_, options_) {
    update();
    total_ = episodes_ = 0;  // The first one allocates.
  }
  void update() {
    total_ += cpu_milliseconds([&] { learner_.reinforce(training_.task, 1e-3, 0.01, Rng(seed_++)); });
    episodes_ += static_cast<double>(options_.batch);
  }
  double per_episode() const { return total_ / episodes_; }

 private:
  Training training_;
  std::unique_ptr<Policy> policy_;
  LearnerOptions options_;
  Learner learner_;
  std::uint64_t seed_ = 0;
  double total_ = 0, episodes_ = 0;
};

// What a whole batch shares: one embedding and its backward pass.
void embed(benchmark::State& state, const BenchGraph& graph) {
  const Machine machine = uniform_machine(graph.devices);
  const Problem problem(graph.graph, machine);
  const PolicyInput input(problem);
  Gnn<float> network(GnnShape{}, Rng(1));
  Embedding<float> embedding;
  for (auto _ : state) {
    network.embed(input, {}, embedding);
    network.backward(embedding);  // Any gradient of this shape takes as long.
  }
}

void train(benchmark::State& state, const BenchGraph& graph, Kind kind) {
  const Machine machine = uniform_machine(graph.devices);
  Trainee trainee(graph.graph, machine, architecture_of(kind), kind == Kind::every_step ? 2 : 16);
  Trainee reference(graph.graph, machine, architecture_of(Kind::once_per_episode), 16);
  for (auto _ : state) {
    trainee.update();
    state.PauseTiming();
    for (int i = 0; i < 10; ++i) reference.update();  // The first, with cold caches, should not decide.
    state.ResumeTiming();
  }
  state.counters["ms_per_episode"] = trainee.per_episode();
  if (kind != Kind::once_per_episode) state.counters["times_default"] = trainee.per_episode() / reference.per_episode();
}

// An episode of every policy that needs no libtorch, with as many in a batch as the policy likes.
void train_policy(benchmark::State& state, const BenchGraph& graph, const std::string& architecture) {
  Trainee trainee(graph.graph, uniform_machine(graph.devices), architecture, 0);
  for (auto _ : state) trainee.update();
  state.counters["ms_per_episode"] = trainee.per_episode();
}

void train_layered(benchmark::State& state) {
  const Graph graph = layered_graph(static_cast<OpId>(state.range(0)));
  const Machine machine = load_machine("p100x8");
  Trainee trainee(graph, machine, architecture_of(Kind::once_per_episode), 16);
  for (auto _ : state) trainee.update();
  state.counters["ms_per_episode"] = trainee.per_episode();
  state.counters["us_per_op"] = 1e3 * trainee.per_episode() / static_cast<double>(state.range(0));
}

// What a user waits for: features, one embedding, one greedy and 64 sampled rollouts, each simulated.
void answer(benchmark::State& state, const Graph& graph, const Machine& machine) {
  const Problem problem(graph, machine);
  const auto policy = make_policy(architecture_of(Kind::once_per_episode), Rng(1));
  for (auto _ : state) {
    policy->begin(policy->encode(problem));
    Episode episode(false);
    Simulator simulator(problem);
    Placement placement;
    Seconds best = Costs::kNever;
    Rng rng(1);
    for (int i = 0; i <= 64; ++i) {
      policy->act(episode, i == 0 ? Deciding::greedy : Deciding::sampled, rng);
      placement.device_of_op = episode.device_of_op;
      best = std::min(best, simulator.makespan(placement));
    }
    benchmark::DoNotOptimize(best);
  }
}
void answer_small(benchmark::State& state, const BenchGraph& graph) {
  answer(state, graph.graph, uniform_machine(graph.devices));
}
void answer_layered(benchmark::State& state) {
  answer(state, layered_graph(static_cast<OpId>(state.range(0))), load_machine("p100x8"));
}

}  // namespace
}  // namespace doppler::bench

int main(int argc, char** argv) {
  using namespace doppler::bench;
  return run_benchmarks(argc, argv, [] {
    const auto graphs = small_graphs();
    for (const BenchGraph* graph : {&graphs[graphs.size() == 6 ? 3 : 2], &graphs.back()}) {
      for (const auto& [name, kind] : {std::pair("default", Kind::once_per_episode),
                                       {"message_passing_step", Kind::every_step},
                                       {"architecture_paper", Kind::paper}})
        benchmark::RegisterBenchmark(("train/" + std::string(name) + "/" + graph->name).c_str(), train, *graph, kind)
            ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("embed_and_backward/" + graph->name).c_str(), embed, *graph)
          ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("zero_shot_64/" + graph->name).c_str(), answer_small, *graph)
          ->Unit(benchmark::kMillisecond);
    }
    const BenchGraph& layer = graphs[graphs.size() == 6 ? 3 : 2];
    for (const doppler::Architecture& architecture : doppler::architectures())
      if (architecture.name != "paper")
        benchmark::RegisterBenchmark(("policy/" + std::string(architecture.usual) + "/" + layer.name).c_str(),
                                     train_policy, layer, std::string(architecture.usual))
            ->Unit(benchmark::kMillisecond);
    const std::string at_every_step = "placeto width 32 rounds 4 messages step";  // The dearest of all.
    benchmark::RegisterBenchmark(("policy/" + at_every_step + "/" + layer.name).c_str(), train_policy, layer,
                                 at_every_step)
        ->Unit(benchmark::kMillisecond);
    for (const auto& [name, run] :
         {std::pair("train/layered", &train_layered), {"zero_shot_64/layered", &answer_layered}})
      benchmark::RegisterBenchmark(name, run)->Arg(300)->Arg(1'000)->Arg(3'000)->Arg(10'000)->Unit(
          benchmark::kMillisecond);
  });
}
