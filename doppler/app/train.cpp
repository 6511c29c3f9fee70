#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/api/policies.h"
#include "doppler/app/console.h"
#include "doppler/app/flags/policies.h"
#include "doppler/app/loading.h"
#include "doppler/app/system_training.h"
#include "doppler/app/training_run.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/version.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/generated_tasks.h"
#include "doppler/learn/train/held_out.h"

namespace doppler {
namespace {

constexpr std::uint64_t kUpdatesPerMetric = 10;

struct TrainOptions : Options {
  std::vector<std::string> graphs, held_out;
  std::string out, stages = "imitation,simulation", teacher, start;
  std::optional<std::uint64_t> episodes;
  std::optional<double> self_imitation;
  std::string weights, without;
  std::size_t generated = 0, held_out_generated = 0;
  bool resume = false;
  std::string policy{policy_names().front()}, architecture, message_passing = "episode";
  std::size_t width = 32, layers = 2;
  std::string checkpoint_every = "10s";
  std::uint64_t held_out_every = 500;
  SystemOptions system;
  TrainingOptions training;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "graph" on --machine, or "graph@machine".
struct Target {
  std::string path;
  Options options;  // It has the machine.

  std::string name() const { return std::filesystem::path(path).stem().string() + "@" + options.machine; }
};
Target parse_target(const std::string& text, const TrainOptions& options) {
  // A path may contain an @ too.
  const std::size_t at = std::filesystem::exists(text) ? std::string::npos : text.rfind('@');
  const std::string path = text.substr(0, at);
  Options here = options;
  if (at != std::string::npos) here.machine = text.substr(at + 1);
  if (here.machine.empty())
    throw InputError(fmt::format("{}: no machine; required --machine or {}@MACHINE", path, path));
  return {path, std::move(here)};
}
std::unique_ptr<Task> load_task(const std::string& text, const TrainOptions& options) {
  const Target target = parse_target(text, options);
  const Problem problem = load(target.path, target.options).problem;
  if (options.objective.empty()) return make_task(target.name(), problem, true);
  return make_task(target.name(), make_objective(options.objective, problem), true);
}

TrainingOptions training_from(const TrainOptions& options, const Policy& policy) {
  TrainingOptions training = options.training;
  training.stages.clear();
  for (const std::string& name : split(options.stages, ',')) training.stages.push_back(parse_stage(name));
  // Each stage may be there once, and they keep to their order.
  if (std::adjacent_find(training.stages.begin(), training.stages.end(), std::greater_equal<>()) !=
          training.stages.end() ||
      training.stages == std::vector{Stage::imitation, Stage::system})
    throw InputError(
        fmt::format("--stages: found '{}'; required imitation, simulation, or imitation,simulation, or one of the "
                    "last two and system, or system alone",
                    options.stages));
  if (!options.teacher.empty())
    training.teacher = parse_teacher(options.teacher);
  else if (!policy.knows(TeacherRule::critical_path))
    training.teacher = Teacher::best;
  training.seed = options.seed;
  training.stop = interruption();
  if (options.self_imitation) training.learner.self_imitation = *options.self_imitation;
  for (const double number : {training.rate, training.last_rate, training.entropy, options.self_imitation.value_or(0)})
    if (!(number >= 0 && number <= 1))
      throw InputError(
          fmt::format("--rate, --last-rate, --entropy, --self-imitation: found {}; required 0 to 1", number));
  if (options.episodes) {
    if (*options.episodes == 0) throw InputError("--episodes: found 0; required at least 1");
    const std::uint64_t batch = policy.batch();
    training.updates = std::max<std::uint64_t>(1, (*options.episodes + batch - 1) / batch);
  } else {
    training.time = parse_duration(options.time, "--time");
    if (training.time <= 0)
      throw InputError(fmt::format("--time: found '{}'; required more than nothing", options.time));
  }
  return training;
}

std::vector<double> weights_from(const TrainOptions& options) {
  if (options.weights.empty()) return std::vector<double>(options.graphs.size(), 1.0);
  std::vector<double> weights;
  for (const std::string& text : split(options.weights, ',')) {
    char* end = nullptr;
    weights.push_back(std::strtod(text.c_str(), &end));
    if (end == text.c_str() || *end != '\0' || !(weights.back() > 0) || !std::isfinite(weights.back()))
      throw InputError(fmt::format("--weights: found '{}'; required positive numbers", text));
  }
  if (weights.size() != options.graphs.size())
    throw InputError(
        fmt::format("--weights: found {}; required one per graph, {}", weights.size(), options.graphs.size()));
  return weights;
}

// One line that overwrites itself, and nothing where standard error is not a terminal.
class TrainingProgress {
 public:
  explicit TrainingProgress(const TrainOptions& options) : line_(options.quiet, "train", false) {}
  void show(const TrainingReport& report, const Trainer& trainer) {
    const UpdateReport& result = report.result;
    std::string state = fmt::format("{:.0f} %, {} episodes, {:.0f}/s, {}", 100 * report.done, trainer.episodes(),
                                    static_cast<double>(trainer.episodes()) / trainer.seconds(), report.task);
    if (report.stage == Stage::simulation) state += fmt::format(": best {:.5g}, mean {:.5g}", report.best, result.mean);
    if (report.bound > 0 && std::isfinite(report.best))
      state += fmt::format(", gap {:.1f} %", 100 * (report.best / report.bound - 1));
    state += fmt::format(", entropy {:.2f}", result.entropy);
    for (std::size_t i = 0; i < result.agreement.size(); ++i)
      state += fmt::format("{} {:.0f} %", i == 0 ? ", agreement" : "", 100 * result.agreement[i].share);
    line_.show_text(to_string(report.stage), state);
  }

 private:
  ProgressLine line_;
};

// Everything that a training needs, and what it does besides updating: metrics, scores on held-out graphs, checkpoints.
class TrainingSession {
 public:
  explicit TrainingSession(const TrainOptions& options)
      : options_(options),
        policy_(make_start(options)),
        trainer_(*policy_, training_from(options, *policy_)),
        held_out_(load_held_out(options)),
        every_(parse_duration(options.checkpoint_every, "--checkpoint-every")) {
    if (!options.objective.empty() && (uses_system(options) || options.generated > 0))
      throw InputError(
          "--objective: found generated graphs or the stage system, which have their own; required neither");
    if (uses_system(options)) {
      add_system();
    } else {
      const std::vector<double> weights = weights_from(options);
      std::vector<std::unique_ptr<Task>> tasks = load_all(options.graphs, options);
      for (std::size_t i = 0; i < tasks.size(); ++i) trainer_.add(std::move(tasks[i]), weights[i]);
    }
    if (options.generated > 0)
      trainer_.add_generated([generated = generated_from(options)](Rng rng) { return generate_task(generated, rng); },
                             options.generated);
    refuse_equal_names();
    if (trainer_.task_count() == 0) throw InputError("train: no graphs; required at least one, or --generated");
    run_ = std::make_unique<TrainingRun>(options.out, options.resume);
    if (options.resume && !run_->resumes() && !options.quiet)
      complain(fmt::format("note: {}: no checkpoint yet; starting from the beginning", options.out));
    if (trainer_.system() != nullptr) run_->keep_measurements(trainer_.system()->objective());
    if (run_->resumes())
      resume();
    else
      run_->save_checkpoint(trainer_, best_held_out_);  // A kill before the first update can be resumed too.
  }

  void run() {
    TrainingProgress progress(options_);
    Seconds saved = trainer_.seconds();
    score_if_due();  // The training that is resumed may have been interrupted there.
    while (const std::optional<TrainingReport> report = trainer_.advance()) {
      progress.show(*report, trainer_);
      if (report->update % kUpdatesPerMetric == 0 || report->stage == Stage::system || trainer_.finished())
        run_->log(*report, trainer_.seconds(), trainer_.episodes());
      score_if_due();
      if (trainer_.seconds() - saved < every_) continue;
      saved = trainer_.seconds();
      save();
    }
    // A training that is interrupted goes on as if it had not been, and is scored where it would have been.
    if (!interrupted()) score_held_out();
    if (!std::isfinite(best_held_out_)) run_->save_policy(trainer_, made_by());
    save();
  }

  Trainer& trainer() { return trainer_; }
  double best_held_out() const { return best_held_out_; }

 private:
  static bool uses_system(const TrainOptions& options) {
    const std::vector<std::string> stages = split(options.stages, ',');
    return std::find(stages.begin(), stages.end(), "system") != stages.end();
  }
  void add_system() {
    if (options_.graphs.size() != 1 || options_.generated > 0)
      throw InputError(fmt::format("--stages system: found {} graphs and {} generated; required one graph to run",
                                   options_.graphs.size(), options_.generated));
    const Target target = parse_target(options_.graphs.front(), options_);
    system_ = std::make_unique<SystemTraining>(target.path, target.options, options_.system);
    trainer_.add(system_->make_task(target.name()));
    system_->join(trainer_, training_from(options_, *policy_).learner);
  }
  void resume() {
    best_held_out_ = run_->resume(trainer_);
    if (!options_.quiet && !options_.episodes)
      complain(fmt::format("note: --time {} is the total; {} of it were used before", options_.time,
                           format_seconds(trainer_.seconds())));
  }
  // Placements are named after their tasks.
  void refuse_equal_names() {
    std::set<std::string> names;
    for (std::size_t i = 0; i < options_.graphs.size(); ++i)
      if (!names.insert(placement_file_name(trainer_.task(i).name())).second)
        throw InputError(
            fmt::format("train: found '{}' twice; required graphs of different names", trainer_.task(i).name()));
  }
  static GeneratedTaskOptions generated_from(const TrainOptions& options) {
    GeneratedTaskOptions generated;
    const LoadOptions loading = load_options(options);
    generated.rules = loading.rules;
    if (loading.links) generated.rules.links = *loading.links;
    generated.mixed_rules = generated.rules == Rules{.seed = options.seed};  // Nothing special was asked for.
    return generated;
  }

  // The policy that is trained, without the parts that are to be left out.
  static std::unique_ptr<Policy> make_start(const TrainOptions& options) {
    check_policy_name("--policy", options.policy);
    auto policy = options.start.empty() ? make_policy(architecture_from(options), Rng(mix(options.seed, 0)))
                                        : policy_from(options.start, read_policy(options.start));
    if (policy->name() != options.policy)
      throw InputError(fmt::format("{}: found policy '{}'; required --policy {}",
                                   options.start.empty() ? "--architecture" : options.start, policy->name(),
                                   policy->name()));
    if (!options.without.empty())
      for (const std::string& part : split(options.without, ',')) policy->leave_out(part);
    return policy;
  }
  // A whole description, or the first word of one with its usual sizes, or what is usual for the policy.
  static std::string architecture_from(const TrainOptions& options) {
    const std::string_view usual = options.architecture.empty()
                                       ? usual_architecture(options.policy)
                                       : architecture_of("--architecture", options.architecture).usual;
    if (options.architecture.find(' ') != std::string::npos) return options.architecture;
    if (usual == usual_architecture(policy_names().front()))
      return fmt::format("gnn width {} layers {} messages {}", options.width, options.layers, options.message_passing);
    const TrainOptions defaults;
    if (options.message_passing != defaults.message_passing || options.width != defaults.width ||
        options.layers != defaults.layers)
      throw InputError(fmt::format(
          "--width, --layers, --message-passing: found for '{}'; required --architecture gnn, or a description "
          "with its sizes",
          usual));
    return std::string(usual);
  }
  static std::vector<std::unique_ptr<Task>> load_all(const std::vector<std::string>& names,
                                                     const TrainOptions& options) {
    std::vector<std::unique_ptr<Task>> tasks;
    for (const std::string& name : names) tasks.push_back(load_task(name, options));
    return tasks;
  }

  static std::vector<std::unique_ptr<Task>> load_held_out(const TrainOptions& options) {
    for (const std::string& text : options.held_out)
      for (const std::string& trained : options.graphs) {
        const Target a = parse_target(text, options), b = parse_target(trained, options);
        if (same_file(a.path, b.path) && a.options.machine == b.options.machine)
          throw InputError(fmt::format(
              "--held-out: found '{}', which is trained on; required graphs that the policy does not see", text));
      }
    std::vector<std::unique_ptr<Task>> tasks = load_all(options.held_out, options);
    for (std::size_t i = 0; i < options.held_out_generated; ++i)
      tasks.push_back(generate_task(generated_from(options), Rng(kHeldOutSeed).split(i)));
    return tasks;
  }

  std::string made_by() const {
    return fmt::format("doppler {} train, seed {}, {} episodes on {} tasks", version(), options_.seed,
                       trainer_.episodes(), trainer_.task_count());
  }
  void score_if_due() {
    if (trainer_.updates() % options_.held_out_every == 0) score_held_out();
  }
  // Keeps the policy if it is the best so far on the held-out graphs. An interruption leaves everything as it was.
  void score_held_out() try {
    if (held_out_.empty() || trainer_.updates() == scored_) return;
    const double score = held_out_.score(*policy_, Budget::unlimited().until(interruption()));
    scored_ = trainer_.updates();
    run_->log_held_out(scored_ - 1, score);
    if (score >= best_held_out_) return;
    best_held_out_ = score;
    run_->save_policy(trainer_, fmt::format("{}, held-out score {:.4f}", made_by(), score));
  } catch (const OutOfTime&) {
  }
  void save() {
    run_->save_checkpoint(trainer_, best_held_out_);
    for (std::size_t i = 0; i < options_.graphs.size(); ++i) {
      Task& task = trainer_.task(i);
      if (task.elites().empty()) continue;
      Provenance made = provenance_of(task.problem(), task.name());
      made.method = policy_->name();
      made.winner = task.finder() == Task::kPolicy ? made.method : task.finder();
      made.budget = options_.episodes ? fmt::format("{} episodes", *options_.episodes) : options_.time;
      made.seed = options_.seed;
      made.evaluations = task.evaluations();
      made.fingerprint = fmt::format("{:016x}", task.problem().graph().fingerprint());
      const SystemStage* system = trainer_.system();
      const bool judged = system != nullptr && system->finished();
      const Placement& placement = judged ? system->verdict()->placement : task.best();
      if (judged) made.winner = system->verdict()->changed ? made.method : made.winner;
      made.makespan = ExactObjective(task.problem()).value(placement);
      made.lower_bound = task.objective().exact() ? task.bound() : lower_bound(task.problem()).value;
      run_->save_placement(task.name(), placement, made);
    }
  }

  const TrainOptions& options_;
  std::unique_ptr<SystemTraining> system_;  // Null unless a stage runs the graph for real.
  std::unique_ptr<Policy> policy_;
  Trainer trainer_;
  HeldOut held_out_;
  Seconds every_;
  std::unique_ptr<TrainingRun> run_;
  double best_held_out_ = Costs::kNever;
  std::uint64_t scored_ = 0;  // The number of updates at the last score.
};

TrainingResult::System system_result(const SystemStage& stage, bool unitless) {
  TrainingResult::System result;
  result.runs = stage.objective().runs();
  result.reused = stage.objective().reused();
  result.refused = stage.objective().refused();
  result.finished = stage.finished();
  result.unitless = unitless;
  if (!stage.finished()) return result;
  const SystemVerdict& verdict = *stage.verdict();
  result.changed = verdict.changed;
  result.before = verdict.before;
  result.after = verdict.after;
  result.p = verdict.p;
  result.finalists = verdict.finalists;
  return result;
}

TrainingResult result_of(TrainingSession& session, const TrainOptions& options) {
  Trainer& trainer = session.trainer();
  TrainingResult result;
  result.directory = options.out;
  result.episodes = trainer.episodes();
  result.seconds = trainer.seconds();
  result.seed = options.seed;
  if (std::isfinite(session.best_held_out())) result.held_out = session.best_held_out();
  if (trainer.system() != nullptr)
    result.system = system_result(*trainer.system(), trainer.task(0).problem().graph().unitless());
  for (std::size_t i = 0; i < options.graphs.size(); ++i) {
    Task& task = trainer.task(i);
    TrainingResult::Task& found = result.tasks.emplace_back();
    found.graph = task.name();
    if (task.bound() > 0) found.lower_bound = task.bound();
    found.unitless = task.problem().graph().unitless();
    found.objective = task.objective().name();
    found.jitter = task.problem().machine().jitter().sigma;
    if (!task.elites().empty())
      found.best = task.best_makespan();
    else if (!options.quiet)
      complain(fmt::format("{}: {}", task.name(),
                           task.evaluations() == 0 ? "there was no time to try a placement"
                                                   : "no placement that fits in memory was found"));
  }
  return result;
}

// A training that tried placements of every graph and found none that fits has no answer; its policy is kept all the
// same.
void refuse_if_nothing_fits(TrainingSession& session, const TrainingResult& result) {
  if (interrupted() || result.tasks.empty()) return;
  for (std::size_t i = 0; i < result.tasks.size(); ++i)
    if (result.tasks[i].best || session.trainer().task(i).evaluations() == 0) return;
  throw InfeasibleError(
      fmt::format("train: found no placement that fits in memory, of {} graphs; required devices with more of it",
                  result.tasks.size()));
}

void run_train(const TrainOptions& options) {
  check_outputs(options.graphs, {{"--json", options.json}, {"--html", options.html}});
  TrainingSession session(options);
  keep_when_interrupted();
  session.run();
  const TrainingResult result = result_of(session, options);
  present(options, result, options.html.empty() ? "" : metrics_of(options.out));
  refuse_if_nothing_fits(session, result);
  if (interrupted() && !options.quiet)
    complain(fmt::format("note: go on with --resume, or use {} as it is", options.out));
}

}  // namespace

void add_train(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("train", "Train a policy that places graphs");
  auto options = std::make_shared<TrainOptions>();
  TrainingOptions& training = options->training;
  verb->add_option("graphs", options->graphs, "Graphs in any format; GRAPH@MACHINE for another machine than --machine");
  add_machine_flag(*verb, *options, false);
  verb->add_option("--out", options->out, "Directory for checkpoint, policy, metrics and placements")
      ->type_name("DIR")
      ->required();
  options->time = "60s";
  CLI::Option* time = verb->add_option("--time", options->time, "How long")->capture_default_str();
  verb->add_option("--episodes", options->episodes, "How many episodes instead; reproducible")
      ->check(whole_number())
      ->excludes(time);
  verb->add_option("--stages", options->stages, "Of imitation, simulation, system; system runs the graph for real")
      ->capture_default_str();
  verb->add_option("--teacher", options->teacher, "Of the imitation stage: critical_path, heft or best")
      ->default_str("critical_path, or best where the policy cannot imitate rules");
  verb->add_option("--held-out", options->held_out, "Graphs that choose the policy to keep; not trained on")
      ->type_name("GRAPH");
  verb->add_option("--held-out-generated", options->held_out_generated, "Generated graphs to choose by; not trained on")
      ->check(CLI::Range(0u, 10000u))
      ->capture_default_str();
  verb->add_option("--held-out-every", options->held_out_every, "Updates between scores on them")
      ->check(CLI::Range(1u, 1000000000u))
      ->capture_default_str();
  verb->add_option("--generated", options->generated, "Also train on generated graphs and machines, so many at a time")
      ->check(CLI::Range(0u, 10000u))
      ->capture_default_str();
  verb->add_option("--weights", options->weights, "How often each graph has its turn, e.g. 2,1,1; default: equally");
  CLI::Option* start =
      verb->add_option("--start", options->start, "Start from this policy instead of a new one")->type_name("PATH");
  verb->add_flag("--resume", options->resume, "Go on with the training in --out; give the same graphs and seed");
  verb->add_option("--checkpoint-every", options->checkpoint_every, "The most that a kill can cost")
      ->type_name("TIME")
      ->capture_default_str();
  verb->add_option("--policy", options->policy, fmt::format("What is trained: {}", fmt::join(policy_names(), ", ")))
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--architecture", options->architecture,
                   "Another network of the policy than the usual: joint, paper (the published one, on libtorch), "
                   "hsdag-published, or a description with its sizes (docs/learning.md)")
      ->excludes(start);
  verb->add_option("--message-passing", options->message_passing,
                   "doppler: once per episode, or at every step; for comparison")
      ->check(CLI::IsMember({"episode", "step"}))
      ->excludes(start)
      ->capture_default_str();
  verb->add_option("--width", options->width, "doppler: of the network; a multiple of 32")
      ->excludes(start)
      ->capture_default_str();
  verb->add_option("--layers", options->layers, "doppler: of message passing")->excludes(start)->capture_default_str();
  verb->add_flag("--cpu-time", training.cpu_time, "--time is of the processor, for comparisons on a busy machine");
  verb->add_option("--rate", training.rate, "Of learning, at first")->capture_default_str();
  verb->add_option("--last-rate", training.last_rate, "Of learning, at the end")->capture_default_str();
  verb->add_option("--entropy", training.entropy, "Weight of the entropy at first; falls to 0")->capture_default_str();
  verb->add_option("--search", training.expert_share, "Share of the work that goes into expert iteration; 0: none")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  verb->add_option("--self-imitation", options->self_imitation,
                   "Weight of imitating the best so far; default: what the policy does best with (0.1, or 0)");
  verb->add_option("--without", options->without,
                   "For ablations: parts of the policy, comma-separated (docs/learning.md)");
  add_system_flags(*verb, options->system);
  add_objective_flag(*verb, *options);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler train examples/blocks.json --machine p100x4 --time 30s --out run\n"
      "  doppler place examples/blocks.json --machine p100x4 --method doppler --checkpoint run");
  verb->callback([options] { run_train(*options); });
}

}  // namespace doppler
