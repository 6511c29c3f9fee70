// What a policy is worth on problems that it has not seen (zero_shot_sets.h).
//
//   zero_shot_quality [--policy FILE] [--samples 64] [--sets published,instances,onnx,families,sizes] [--search]
//
// Every row is the policy alone (its greedy placement and the samples, no heuristics) against the best of CRITICAL PATH
// (50 runs), HEFT, ETF, METIS (50 runs) and the enumerative method. All of them choose by the usual objective, the mean
// of 16 draws where times vary; what they chose is then judged by 64 other draws. Each set ends with the geometric mean
// of the ratios and with the worst. A plain table, because the times are those of single calls; they are of the CPU.
//
// With --search: on every problem (or every n-th, --every) above 300 ops, 1 s of annealing from the answer of method
// `doppler` (the best of the policy, HEFT, ETF and one device) against 1 and 10 s of annealing alone. A second is as
// many evaluations as annealing makes in a second of the CPU, so that other work on the machine does not count.
#include <algorithm>
#include <cmath>
#include <ctime>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/train/trained_policy.h"
#include "doppler/place/list/critical_path.h"
#include "doppler/place/list/etf.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/partition/enumerative.h"
#include "doppler/place/partition/metis.h"
#include "doppler/place/search/anneal.h"
#include "zero_shot_sets.h"

namespace doppler {
namespace {

constexpr OpId kLarge = 300;
constexpr std::size_t kJudges = 64;  // Draws that nobody has chosen by.

struct QualityOptions {
  std::string policy;
  std::vector<std::string> sets;  // None: all of them.
  std::uint32_t samples = 64;
  bool search = false;
  std::size_t every = 1;
  OpId most_ops = 1'000'000;
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

// What a placement is worth by times that nobody has chosen it by.
Seconds judged(const Problem& problem, const Placement& placement) {
  if (usual_objective(problem)->exact()) return ExactObjective(problem).value(placement);
  return ExpectedObjective(problem, Draws{kJudges, Draws::reported}).value(placement);
}

struct Rival {
  std::string_view name;
  Proposal (*run)(const Problem&, Objective&, const MethodOptions&);
};
constexpr Rival kRivals[] = {
    {"critical path", critical_path}, {"heft", heft}, {"etf", etf}, {"metis", metis}, {"enumerative", enumerative}};

struct BestRival {
  std::string_view name;
  Seconds value = Costs::kNever;
};
BestRival best_rival(const Problem& problem) {
  BestRival best;
  const auto objective = usual_objective(problem);
  for (const Rival& rival : kRivals) try {
      const Proposal found = rival.run(problem, *objective, options_with(Budget::unlimited()));
      if (const Seconds value = judged(problem, found.placement); value < best.value) best = {rival.name, value};
    } catch (const InfeasibleError&) {
      continue;  // The others may fit in memory.
    }
  return best;
}

void report(const ZeroShotSet& set, const LearnedPolicy& policy, const QualityOptions& options) {
  fmt::print("{}: {}\n  {:58} {:>5} {:>3} {:>11} {:>11} {:13} {:>6} {:>8} {:>9}\n", set.name, set.summary, "problem",
             "ops", "", "policy", "best rival", "", "ratio", "over", "CPU");
  double sum = 0, worst = 0;
  std::size_t count = 0, wins = 0, losses = 0;
  for (const ZeroShotInstance& instance : set.instances) {
    const Problem& problem = instance.problem;
    if (problem.op_count() > options.most_ops) continue;
    const BestRival rival = best_rival(problem);
    const auto objective = usual_objective(problem);
    const double before = cpu_seconds();
    const Proposal found = policy.zero_shot(problem, *objective, options_with(Budget::unlimited()));
    const double seconds = cpu_seconds() - before;
    const Seconds own = judged(problem, found.placement);
    const double ratio = own / rival.value;
    sum += std::log(ratio);
    worst = std::max(worst, ratio);
    wins += ratio < 0.97 ? 1 : 0;
    losses += ratio > 1.05 ? 1 : 0;
    ++count;
    fmt::print("  {:58} {:5} {:3} {:11.5g} {:11.5g} {:13} {:6.3f} {:>8} {:6.0f} ms\n", instance.name.substr(0, 58),
               problem.op_count(), problem.device_count(), own, rival.value, rival.name, ratio,
               instance.known > 0 ? fmt::format("{:.1f} %", 100 * (own / instance.known - 1)) : "", 1e3 * seconds);
    std::fflush(stdout);
  }
  fmt::print("  {} problems: geometric mean {:.3f}, worst {:.3f}, {} more than 3 % below, {} more than 5 % above\n\n",
             count, count > 0 ? std::exp(sum / static_cast<double>(count)) : 1.0, worst, wins, losses);
}

// How many evaluations annealing makes in a second of the CPU.
std::uint64_t evaluations_per_second(const Problem& problem) {
  std::uint64_t tried = 1000;
  for (;; tried *= 4) {
    const auto objective = usual_objective(problem);
    const double before = cpu_seconds();
    const Proposal found = anneal(problem, *objective, options_with(Budget::for_evaluations(tried)));
    const double seconds = cpu_seconds() - before;
    if (seconds > 0.3) return static_cast<std::uint64_t>(static_cast<double>(found.evaluations) / seconds) + 1;
  }
}

void report_search(const ZeroShotSet& set, const std::shared_ptr<const LearnedPolicy>& policy,
                   const QualityOptions& options) {
  fmt::print("{}: search above {} ops\n  {:58} {:>5} {:>13} {:>10} {:>11} {:>7}\n", set.name, kLarge, "problem", "ops",
             "doppler + 1 s", "1 s alone", "10 s alone", "ratio");
  double sum = 0, worst = 0;
  std::size_t count = 0, seen = 0;
  for (const ZeroShotInstance& instance : set.instances) {
    const Problem& problem = instance.problem;
    if (problem.op_count() <= kLarge || problem.op_count() > options.most_ops || seen++ % options.every != 0) continue;
    const std::uint64_t second = evaluations_per_second(problem);
    const auto annealed = [&](std::uint64_t evaluations) {
      const auto objective = usual_objective(problem);
      return judged(problem, anneal(problem, *objective, options_with(Budget::for_evaluations(evaluations))).placement);
    };
    MethodOptions from = options_with(Budget::unlimited());
    from.policy = policy;
    const auto objective = usual_objective(problem);
    const Placement start = learned(problem, *objective, from).placement;
    from.budget = Budget::for_evaluations(second);
    const Seconds own = judged(problem, anneal_from(problem, *objective, from, {start}).placement);
    const Seconds brief = annealed(second), alone = annealed(10 * second);
    const double ratio = own / alone;
    fmt::print("  {:58} {:5} {:13.5g} {:10.5g} {:11.5g} {:7.3f}\n", instance.name.substr(0, 58), problem.op_count(),
               own, brief, alone, ratio);
    std::fflush(stdout);
    sum += std::log(ratio);
    worst = std::max(worst, ratio);
    ++count;
  }
  fmt::print("  {} problems: geometric mean {:.3f}, worst {:.3f}\n\n", count,
             count > 0 ? std::exp(sum / static_cast<double>(count)) : 1.0, worst);
}

void run(const QualityOptions& options) {
  TrainedPolicyOptions trained;
  trained.samples = options.samples;
  const std::string where = options.policy.empty() ? "the shipped policy" : options.policy;
  const auto policy = std::make_shared<TrainedPolicy>(
      where, options.policy.empty() ? shipped_policy() : parse_policy(where, read_file(where)), trained);
  const std::vector<std::string_view> all = zero_shot_sets();
  const std::vector<std::string_view> chosen(options.sets.begin(), options.sets.end());
  for (const std::string_view name : chosen.empty() ? all : chosen) {
    const ZeroShotSet set = make_zero_shot_set(name);
    if (set.instances.empty())
      fmt::print("{}: not found at {}\n\n", set.name, DOPPLER_SHARED_DATA);
    else if (options.search)
      report_search(set, policy, options);
    else
      report(set, *policy, options);
  }
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) {
  using namespace doppler;
  CLI::App command("Judges a policy by problems that it has not seen");
  QualityOptions options;
  command.add_option("--policy", options.policy, "A policy file instead of the shipped one");
  command.add_option("--sets", options.sets, "Of published, instances, onnx, families, sizes")->delimiter(',');
  command.add_option("--samples", options.samples, "Samples beside the greedy placement")->capture_default_str();
  command.add_flag("--search", options.search, "Search from the policy's answer against search alone");
  command.add_option("--every", options.every, "With --search: every n-th problem of a set")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--most-ops", options.most_ops, "Leave larger problems out")->capture_default_str();
  CLI11_PARSE(command, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
