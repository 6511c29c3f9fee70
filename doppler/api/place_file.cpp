#include <algorithm>

#include "doppler/analyse/fit.h"
#include "doppler/api/judge.h"
#include "doppler/api/method_options.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/place.h"
#include "doppler/place/cheap_methods.h"

namespace doppler {
namespace {

// Shares of the time for looking at cuts with quick methods, and of the rest for the uncut model.
constexpr double kScreeningShare = 0.2, kUncutShare = 0.5;
// A hint is worth a line from this speed-up on.
constexpr double kWorthAHint = 1.05;
// How long somebody whose graph does not fit waits for what would make it fit.
constexpr Seconds kFitTime = 3;

// Places one file in several cuts. The content is read once: it may be standard input.
class CutModel {
 public:
  CutModel(const std::string& path, const Machine& machine, const LoadOptions& load, const PlaceOptions& options)
      : path_(path), content_(read_file(path)), machine_(machine), load_(load), options_(options) {}

  LoadedProblem load(std::uint32_t parts) const {
    LoadOptions cut = load_;
    cut.shard = parts;
    GraphFile file = parse_graph_file(path_, content_, &machine_, cut);
    Problem problem = make_problem(file, machine_, cut);
    return {std::move(file), std::move(problem)};
  }

  // How many blocks are worth a try.
  std::vector<std::uint32_t> cuts() const {
    bool equal = true;
    for (DeviceId id = 1; id < machine_.device_count(); ++id) {
      Device other = machine_.device(id);
      other.name = machine_.device(0).name;
      equal = equal && other == machine_.device(0);
    }
    const std::uint32_t most = machine_.device_count() * (equal ? 1 : 2);
    std::vector<std::uint32_t> parts;
    for (std::uint32_t cut = 2; cut <= most && machine_.device_count() > 1; cut *= 2) parts.push_back(cut);
    return parts;
  }

  // What quick methods make of the model in so many blocks, by the usual objective; nothing if none fits or there is no
  // time.
  std::optional<Seconds> screen(const LoadedProblem& loaded, const Budget& budget) const {
    const std::shared_ptr<Objective> objective = objective_of(loaded.problem, options_);
    MethodOptions quick = method_options(options_, budget, nullptr);
    std::optional<Seconds> best;
    ask(quick_methods(loaded.problem), loaded.problem, *objective, quick,
        [&](std::string_view, const Proposal& proposal) {
          const Seconds value = objective->value(proposal.placement);
          if (!best || value < *best) best = value;
        });
    return best;
  }

  struct Screened {
    std::uint32_t parts = 0;
    Seconds value = 0;
  };
  // The cut that quick methods like best; nothing if none can be made or fits.
  std::optional<Screened> best_cut(const Budget& budget) const {
    std::optional<Screened> best;
    for (const std::uint32_t parts : cuts()) {
      if (budget.out_of_time()) break;
      const std::optional<Seconds> value = screen(load(parts), budget);
      if (value && (!best || *value < best->value)) best = Screened{parts, *value};
    }
    return best;
  }

  PlacedFile place(std::uint32_t parts, double share) const {
    LoadedProblem loaded = load(parts);
    if (options_.on_loaded) options_.on_loaded(loaded);
    PlaceOptions options = options_;
    options.time *= share;
    if (options.start) options.start_placement = options.start(loaded);
    try {
      PlaceResult result = doppler::place(loaded.problem, options);
      result.shard = parts;
      result.run.outcome.made.shard = parts;
      return {std::move(loaded), std::move(result)};
    } catch (const InfeasibleError&) {
      if (!loaded.problem.memory_limited() || options.stop.stop_requested()) throw;
      if (fits_somehow(loaded.problem, Budget::for_time(kFitTime).until(options.stop))) throw;  // The method cannot.
      throw InfeasibleError(why_it_does_not_fit(loaded));
    }
  }

  // What it takes, and what would help; sizes of symbolic dimensions are tried, too.
  std::string why_it_does_not_fit(const LoadedProblem& loaded) const {
    const Budget budget = Budget::for_time(kFitTime).until(options_.stop);
    FitFacts facts = analyse_fit(loaded.problem, budget);
    for (const auto& [name, size] : load_.dims)
      for (std::int64_t smaller = size / 2; smaller > 0 && !budget.out_of_time(); smaller /= 2) {
        LoadOptions with_smaller = load_;
        with_smaller.shard = 0;
        with_smaller.dims[name] = smaller;
        const GraphFile file = parse_graph_file(path_, content_, &machine_, with_smaller);
        if (!fits_somehow(make_problem(file, machine_, with_smaller), budget)) continue;
        facts.remedies.push_back(fmt::format("--dim {}={}", name, smaller));
        break;
      }
    return describe_fit(path_, machine_, facts);
  }

  // The uncut model and its best cut, whichever is better; the error of the uncut one if neither fits in memory.
  PlacedFile place_best() const {
    const Budget screening = budget_of(options_).share(kScreeningShare);
    const std::optional<Screened> cut = best_cut(screening);
    const double rest = options_.evaluations ? 1 : 1 - kScreeningShare;
    std::optional<PlacedFile> best;
    std::exception_ptr why_not;
    const auto consider = [&](std::uint32_t parts, double share) {
      try {
        PlacedFile found = place(parts, share);
        if (!best || better(found.result.run.outcome, best->result.run.outcome)) best = std::move(found);
      } catch (const InfeasibleError&) {
        if (!why_not) why_not = std::current_exception();
      }
    };
    consider(0, cut ? rest * kUncutShare : rest);
    if (cut) consider(cut->parts, rest * (1 - kUncutShare));
    if (!best) std::rethrow_exception(why_not);
    return std::move(*best);
  }

  std::optional<Seconds> single_device_uncut(const Budget& budget) const {
    ExactObjective exact(load(0).problem);
    return best_single_device(exact, budget);
  }

 private:
  const std::string& path_;
  std::string content_;
  const Machine& machine_;
  const LoadOptions& load_;
  const PlaceOptions& options_;
};

}  // namespace

PlacedFile place_file(const std::string& path, const Machine& machine, const LoadOptions& load,
                      const PlaceOptions& options) {
  const CutModel model(path, machine, load, options);
  const bool tries = load.shard == LoadOptions::kAutoShard;
  PlacedFile placed = tries ? model.place_best() : model.place(load.shard, 1);
  PlaceResult& result = placed.result;
  const Budget budget = budget_of(options).share(kScreeningShare);
  if (result.shard > 0) result.single_device = model.single_device_uncut(budget);
  const bool could_be_cut = placed.loaded.file.onnx && load.shard == 0 && load.granularity == Granularity::op;
  if (could_be_cut && result.devices_used == 1 && !options.stop.stop_requested()) {
    const auto cut = model.best_cut(budget);
    const Seconds now = result.run.outcome.expected.value_or(result.run.outcome.made.makespan);
    if (cut && cut->value * kWorthAHint < now) result.hint = PlaceResult::ShardHint{cut->parts, cut->value};
  }
  return placed;
}

}  // namespace doppler
