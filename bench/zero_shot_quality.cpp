// What a policy is worth on graphs that it has not seen: zero_shot_quality [POLICY].
//
// For each graph: the policy alone (greedy and 64 samples) against the best of CRITICAL PATH (50 runs), HEFT, ETF and
// METIS, with its CPU time; then, above 300 ops, 1 s of annealing from the answer of method `doppler` (the best of the
// policy, HEFT, ETF and one device) against 1 and 10 s of annealing alone. A plain table, because the times are those
// of single calls. Without an argument it is the shipped policy.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "doppler/base/file.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/graph/generate.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/train/task.h"
#include "doppler/learn/train/trained_policy.h"
#include "doppler/place/list/critical_path.h"
#include "doppler/place/list/etf.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/partition/metis.h"
#include "doppler/place/search/anneal.h"

namespace doppler {
namespace {

constexpr OpId kLarge = 300;

struct Instance {
  std::string name;
  std::unique_ptr<Task> task;
  double known = 0;  // The best known makespan; 0 if there is none.
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

MethodOptions options_with(Budget budget) {
  MethodOptions options;
  options.budget = budget;
  return options;
}

Instance read_instance(const std::filesystem::path& path, DeviceId devices, double known = 0) {
  auto graph = parse_graph(path, read_file(path), {.repair = true}).graph;
  return {path.stem(), make_task(path.stem(), Problem(std::move(graph), uniform_machine(devices), Rules{}), false),
          known};
}

std::vector<Instance> published() {
  const std::filesystem::path directory = std::filesystem::path(DOPPLER_SHARED_DATA) / "doppler_graphs";
  std::vector<Instance> instances;
  if (!std::filesystem::exists(directory)) return instances;
  instances.push_back(read_instance(directory / "chain_mm_112nodes.txt", 4, 1200.07e10));
  instances.push_back(read_instance(directory / "ffnn_192nodes.txt", 4, 56.70e10));
  instances.push_back(read_instance(directory / "transformer_block_215nodes.txt", 4, 166.72e10));
  instances.push_back(read_instance(directory / "full_transformer_layer_261nodes.txt", 4, 122.62e10));
  instances.push_back(read_instance(directory / "8gpu_transformer_block.txt", 8, 166.73e10));
  instances.push_back(read_instance(directory / "8gpu_full_transformer.txt", 8, 166.56e10));
  return instances;
}

std::vector<Instance> others() {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path directory = std::filesystem::path(DOPPLER_SHARED_DATA) / "instances";
  if (!std::filesystem::exists(directory)) return {};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.path().extension() == ".json" || entry.path().extension() == ".stg") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Instance> instances;
  for (const auto& path : paths) instances.push_back(read_instance(path, 8));
  return instances;
}

// As large as any trained on, with a wider spread of costs.
std::vector<Instance> generated() {
  std::vector<Instance> instances;
  const auto add = [&](Graph graph, const char* machine) {
    const std::string name = fmt::format("{} on {}", graph.title().substr(0, graph.title().find(',')), machine);
    instances.push_back({name, make_task(name, Problem(std::move(graph), load_machine(machine), Rules{}), false), 0});
  };
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    GeneratedCosts costs;
    costs.communication_ratio = std::pow(4.0, static_cast<double>(seed));
    costs.spread = 2;
    const OpId ops = static_cast<OpId>(1000 + 500 * seed);
    add(generate_layered({.ops = ops, .width = 40, .degree = 2, .seed = seed + 90, .costs = costs}), "v100x8");
    add(generate_random({.ops = ops, .degree = 2, .seed = seed + 90, .costs = costs}), "p100x4");
    add(generate_series_parallel({.ops = ops, .parallel = 0.5, .seed = seed + 90, .costs = costs}), "a100x8");
    add(generate_chain_of_blocks({.ops = ops, .width = 20, .depth = 6, .seed = seed + 90, .costs = costs}), "p100x8");
  }
  return instances;
}

void report(const char* title, const std::vector<Instance>& instances, const LearnedPolicy& policy) {
  if (instances.empty()) {
    fmt::print("{}: not found at {}\n\n", title, DOPPLER_SHARED_DATA);
    return;
  }
  fmt::print("{}\n  {:36} {:>5} {:>3} {:>12} {:>14} {:>7} {:>8} {:>10}\n", title, "graph", "ops", "", "policy",
             "best classical", "ratio", "over", "CPU");
  double sum = 0, guarded = 0;
  for (const Instance& instance : instances) {
    const Problem& problem = instance.task->problem();
    Objective& objective = instance.task->objective();
    Seconds rival = Costs::kNever, fallback = Costs::kNever;
    for (const auto method : {critical_path, heft, etf, metis}) {
      const Seconds makespan = objective.value(method(problem, objective, options_with(Budget::unlimited())).placement);
      rival = std::min(rival, makespan);
      if (method == heft || method == etf) fallback = std::min(fallback, makespan);
    }
    const double before = cpu_seconds();
    const Seconds own =
        objective.value(policy.zero_shot(problem, objective, options_with(Budget::unlimited())).placement);
    const double seconds = cpu_seconds() - before;
    sum += std::log(own / rival) / static_cast<double>(instances.size());
    guarded += std::log(std::min(own, fallback) / rival) / static_cast<double>(instances.size());
    fmt::print("  {:36} {:5} {:3} {:12.5g} {:14.5g} {:7.3f} {:>8} {:7.1f} ms\n", instance.name.substr(0, 36),
               problem.op_count(), problem.device_count(), own, rival, own / rival,
               instance.known > 0 ? fmt::format("{:.1f} %", 100 * (own / instance.known - 1)) : "", 1e3 * seconds);
  }
  fmt::print("  geometric mean of the ratio: policy alone {:.3f}, method `doppler` (with heft and etf) {:.3f}\n\n",
             std::exp(sum), std::exp(guarded));
}

Seconds annealed(const Problem& problem, MethodOptions options, double seconds) {
  options.budget = Budget::for_time(seconds);
  ExactObjective objective(problem);
  return objective.value(anneal(problem, objective, options).placement);
}

void report_annealing(const std::vector<Instance>& instances, const std::shared_ptr<const LearnedPolicy>& policy) {
  fmt::print("annealing above {} ops, median of 3 seeds\n  {:36} {:>5} {:>13} {:>10} {:>11} {:>7}\n", kLarge, "graph",
             "ops", "doppler + 1 s", "1 s alone", "10 s alone", "ratio");
  double sum = 0, count = 0;
  for (const Instance& instance : instances) {
    const Problem& problem = instance.task->problem();
    if (problem.op_count() <= kLarge) continue;
    std::vector<Seconds> own, brief, alone;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      MethodOptions options = options_with(Budget::unlimited());
      options.seed = seed;
      options.policy = policy;
      ExactObjective objective(problem);
      const Placement start = learned(problem, objective, options).placement;
      options.budget = Budget::for_time(1);
      own.push_back(objective.value(anneal_from(problem, objective, options, {start}).placement));
      brief.push_back(annealed(problem, options, 1));
      alone.push_back(annealed(problem, options, 10));
    }
    for (auto* makespans : {&own, &brief, &alone}) std::sort(makespans->begin(), makespans->end());
    fmt::print("  {:36} {:5} {:13.5g} {:10.5g} {:11.5g} {:7.3f}\n", instance.name.substr(0, 36), problem.op_count(),
               own[1], brief[1], alone[1], own[1] / alone[1]);
    std::fflush(stdout);
    sum += std::log(own[1] / alone[1]);
    ++count;
  }
  fmt::print("  geometric mean of the ratio: {:.3f}\n", std::exp(sum / std::max(count, 1.0)));
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) {
  using namespace doppler;
  const std::string where = argc > 1 ? argv[1] : "the shipped policy";
  const auto shared = std::make_shared<TrainedPolicy>(
      where, argc > 1 ? parse_policy(where, read_file(where)) : shipped_policy(), TrainedPolicyOptions{});
  const TrainedPolicy& policy = *shared;
  const std::vector<Instance> six = published(), large = generated();
  report("published graphs (best known: fifo, long runs)", six, policy);
  report("instances", others(), policy);
  report("generated, held out: costs more spread than trained on", large, policy);
  report_annealing(six, shared);
  report_annealing(large, shared);
}
