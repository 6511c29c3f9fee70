#include "doppler/learn/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/graph/formats/json_reader.h"
#include "doppler/learn/train/expert.h"
#include "doppler/place/cheap_methods.h"

namespace doppler {
namespace {

// An episode with its share of the update takes about as long as so many simulations, on the published graphs.
constexpr double kSimulationsPerEpisode = 150;
// A search by draws races them, so that an evaluation takes fewer simulations than there are draws.
constexpr double kSimulationsPerDrawnEvaluation = 6;
// How many placements a cheap method may try on a generated task, which is soon gone.
constexpr std::uint64_t kTriesOnGenerated = 5;
// Expert iteration spends its credit in chunks of these sizes (evaluations per op), drawn by lot: short ones polish,
// long ones cross barriers.
constexpr double kSearchPerOp[] = {30, 30, 100, 400};
constexpr std::uint64_t kBlockMoves = 400;  // The temperature has fallen to nothing by then.
constexpr double kLongestSearch = 6e7;      // Simulated ops: a few seconds at most, so that checkpoints come in time.

// What random numbers are for within a training; each has a stream of its own.
enum class Stream : std::uint64_t { update = 1, generation = 2, expert = 3, system = 4 };
Rng stream(std::uint64_t seed, Stream which, std::uint64_t index) {
  return Rng(mix(seed, static_cast<std::uint64_t>(which))).split(index);
}

// Returns the options with the policy's own batch, if nobody asked for another.
TrainingOptions with_batch(TrainingOptions options, const Policy& policy) {
  if (options.learner.batch == 0) options.learner.batch = policy.batch();
  return options;
}

// Returns the rule of a teacher that is one.
TeacherRule rule_of(Teacher teacher) {
  return teacher == Teacher::heft ? TeacherRule::heft : TeacherRule::critical_path;
}

}  // namespace

std::string_view to_string(Stage stage) {
  if (stage == Stage::system) return "system";
  return stage == Stage::imitation ? "imitation" : "simulation";
}

Stage parse_stage(std::string_view text) {
  if (text == "imitation") return Stage::imitation;
  if (text == "simulation") return Stage::simulation;
  if (text == "system") return Stage::system;
  throw InputError(fmt::format("--stages: found '{}'; required imitation, simulation or system", text));
}

Teacher parse_teacher(std::string_view text) {
  if (text == "critical_path") return Teacher::critical_path;
  if (text == "heft") return Teacher::heft;
  if (text == "best") return Teacher::best;
  throw InputError(fmt::format("--teacher: found '{}'; required critical_path, heft or best", text));
}

Trainer::Trainer(Policy& policy, const TrainingOptions& options)
    : policy_(policy), options_(with_batch(options, policy)), learner_(policy, options_.learner) {
  DOPPLER_CHECK(!options.stages.empty() && (options.updates > 0 || options.time > 0), "nothing to train");
  DOPPLER_CHECK(std::is_sorted(options.stages.begin(), options.stages.end()), "stages out of order");
  if (has(Stage::imitation) && options.teacher != Teacher::best && !policy.knows(rule_of(options.teacher)))
    throw InputError(
        fmt::format("--teacher: found a rule that policy '{}' cannot imitate; required --teacher best", policy.name()));
}

Task& Trainer::add(std::unique_ptr<Task> task, double weight) {
  policy_.check_trainable(task->name(), task->problem());
  slots_.push_back({.task = std::move(task), .weight = weight});
  return *slots_.back().task;
}

void Trainer::add_generated(TaskGenerator generator, std::size_t count) {
  generator_ = std::move(generator);
  for (std::size_t i = 0; i < count; ++i) {
    Slot slot;
    slot.generated = true;
    generate(slot);
    slots_.push_back(std::move(slot));
  }
}

SystemStage& Trainer::use_system(std::shared_ptr<Executor> executor, const SystemStageOptions& options) {
  DOPPLER_CHECK(!slots_.empty() && has(Stage::system), "a system without a task or a stage");
  system_ = std::make_unique<SystemStage>(policy_, *slots_.front().task, std::move(executor), options);
  return *system_;
}

bool Trainer::has(Stage stage) const {
  return std::find(options_.stages.begin(), options_.stages.end(), stage) != options_.stages.end();
}

void Trainer::generate(Slot& slot) {
  slot.generation = generated_++;
  slot.task = generator_(stream(options_.seed, Stream::generation, slot.generation));
  slot.search_credit = 0;
}

Seconds Trainer::now() const {
  if (options_.cpu_time) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Seconds Trainer::seconds() const { return seconds_before_ + (begun_ ? now() - started_ : 0); }

double Trainer::done() const {
  if (options_.stages.front() == Stage::system) return 1;
  if (options_.updates > 0) return static_cast<double>(updates_) / static_cast<double>(options_.updates);
  return seconds() / options_.time;
}

bool Trainer::finished() const { return has(Stage::system) ? system_ && system_->finished() : done() >= 1; }

Trainer::Slot& Trainer::next_slot() {
  const auto turn = [](const Slot& slot) { return static_cast<double>(slot.visits + 1) / slot.weight; };
  return *std::min_element(slots_.begin(), slots_.end(),
                           [&](const Slot& a, const Slot& b) { return turn(a) < turn(b); });
}

std::optional<TrainingReport> Trainer::advance() {
  while (!finished() && !budget(false).interrupted()) {
    try {
      return step();
    } catch (const OutOfTime&) {
      // The time is that of the stages before the system stage, which ends by its runs.
      if (!has(Stage::system) || on_system()) break;
    } catch (const RunCancelled&) {  // The runs that ended are kept.
      break;
    }
  }
  return std::nullopt;
}

// How long an update may take.
Budget Trainer::budget(bool timed) const {
  const auto clocked = options_.cpu_time ? Budget::for_processor_time : Budget::for_time;
  const bool ends = timed && options_.updates == 0;
  return (ends ? clocked(options_.time - seconds()) : Budget::unlimited()).until(options_.stop);
}

TrainingReport Trainer::step() {
  DOPPLER_CHECK(!slots_.empty(), "training without tasks");
  if (!begun_) {
    begun_ = true;
    started_ = now();
  }
  const bool real = on_system() || (has(Stage::system) && done() >= 1);
  const PolicyLimit limit(policy_, budget(!real));
  if (real) return system_step();
  Slot& slot = next_slot();
  if (!repeatable()) return simulated_step(slot);
  remember(slot);
  try {
    return simulated_step(slot);
  } catch (const OutOfTime&) {
    go_back(slot);
    throw;
  }
}

void Trainer::remember(const Slot& slot) {
  const Task& task = *slot.task;
  before_.generated = generated_;
  before_.generation = slot.generation;
  before_.search_credit = slot.search_credit;
  before_.next_chunk = slot.next_chunk;
  before_.evaluations = task.evaluations();
  before_.best = task.best();
  before_.finder = task.finder();
  before_.elites = task.elites();
}

void Trainer::go_back(Slot& slot) {
  generated_ = before_.generated;
  if (slot.generated && slot.generation != before_.generation)
    slot.task = generator_(stream(options_.seed, Stream::generation, before_.generation));
  slot.generation = before_.generation;
  slot.search_credit = before_.search_credit;
  slot.next_chunk = before_.next_chunk;
  slot.task->restore(before_.best, before_.finder, before_.elites, before_.evaluations);
}

TrainingReport Trainer::simulated_step(Slot& slot) {
  if (slot.generated && slot.visits > 0 && slot.visits % options_.visits_per_generated == 0) generate(slot);
  TrainingReport report;
  report.done = std::min(done(), 1.0);
  const bool both = has(Stage::imitation) && has(Stage::simulation);
  report.stage = both && report.done >= options_.imitation_share ? Stage::simulation : options_.stages.front();
  Rng rng = stream(options_.seed, Stream::update, updates_);
  report.result = update(slot, report.stage, report.done, rng);
  ++slot.visits;
  report.update = updates_++;
  const Task& task = *slot.task;
  report.task = task.name();
  report.best = task.best_makespan();
  report.bound = task.bound();
  return report;
}

TrainingReport Trainer::system_step() {
  TrainingReport report;
  report.stage = Stage::system;
  report.done = system_->done();
  report.update = updates();
  report.result = system_->step(stream(options_.seed, Stream::system, system_->steps()));
  report.task = system_->task().name();
  report.best = system_->task().best_makespan();
  report.runs = system_->objective().runs();
  report.refused = system_->objective().refused();
  return report;
}

UpdateReport Trainer::update(Slot& slot, Stage stage, double done, Rng rng) {
  Task& task = *slot.task;
  // Where memory is tight samples seldom fit: begin with placements that were repaired. A generated task is gone before
  // search has found much: begin with what the cheap methods find. Neither if the policy is to learn from its own.
  const bool begins = task.elites().empty() && (slot.visits == 0 || slot.generated);
  if (begins && (((task.problem().memory_limited() || slot.generated) && options_.expert_share > 0) ||
                 (stage == Stage::imitation && options_.teacher == Teacher::best)))
    ask_cheap_methods(task, slot.generated ? kTriesOnGenerated : Budget::kUnlimited);
  const double rate = options_.rate + (options_.last_rate - options_.rate) * done;
  if (stage == Stage::imitation) {
    if (options_.teacher == Teacher::best) {
      if (task.elites().empty())
        throw InfeasibleError(
            fmt::format("{}: no classical method found a placement that fits in memory", task.name()));
      return learner_.follow_best(task, rate);
    }
    return learner_.imitate(task, rule_of(options_.teacher), rate, rng);
  }
  const UpdateReport report = learner_.reinforce(task, rate, options_.entropy * (1 - done), rng);
  if (begins && task.elites().empty() && task.problem().memory_limited())
    ask_cheap_methods(task, Budget::kUnlimited);  // None did fit.
  if (options_.expert_share > 0) {
    slot.search_credit += search_per_update(task);
    try {
      seek_expert(slot, stream(options_.seed, Stream::expert, updates_));
    } catch (const OutOfTime&) {
      learner_.undo();
      throw;
    }
  }
  return report;
}

double Trainer::search_per_update(const Task& task) const {
  const double simulations = options_.expert_share / (1 - options_.expert_share) * kSimulationsPerEpisode *
                             static_cast<double>(options_.learner.batch);
  return task.objective().drawn() ? simulations / kSimulationsPerDrawnEvaluation : simulations;
}

// Each method may try so many placements.
void Trainer::ask_cheap_methods(Task& task, std::uint64_t tries) {
  MethodOptions options;
  options.budget = budget(true).at_most(tries);
  options.seed = options_.seed;
  ask(cheap_methods(), task.problem(), task.objective(), options,
      [&](std::string_view method, const Proposal& found) { task.evaluate(found.placement, method); });
  if (options.budget.out_of_time()) throw OutOfTime();  // There may have been more to find.
}

// Searches from the batch's best half of the time, otherwise from the best elite or a random one. Throws OutOfTime if
// it is cut short where it has to be repeatable.
void Trainer::seek_expert(Slot& slot, Rng rng) {
  Task& task = *slot.task;
  if (slot.next_chunk == 0) {
    // The first is short, so that a short training has one.
    const std::size_t size = slot.visits == 0 ? 0 : rng.below(std::size(kSearchPerOp));
    const double per_op = kSearchPerOp[size], ops = task.problem().op_count();
    double chunk = std::min(kLongestSearch / ops, per_op * ops);
    // A large generated task would be gone before there is credit for a long search.
    if (slot.generated)
      chunk = std::min(chunk, search_per_update(task) * static_cast<double>(options_.visits_per_generated) / 3);
    slot.next_chunk = 1 + static_cast<std::uint64_t>(chunk);
  }
  if (slot.search_credit < static_cast<double>(slot.next_chunk) || task.elites().empty()) return;
  Placement start;
  const double dice = rng.uniform();
  if (dice < 0.5) {
    start = learner_.best_of_batch();
  } else {
    const auto& elites = task.elites();
    const Elite& elite = elites[dice < 0.75 ? 0 : rng.below(static_cast<std::uint32_t>(elites.size()))];
    start.device_of_op = elite.device_of_op;
    start.priority = ranks_from_order(elite.order);
  }
  // A policy with clusters of its own moves those every other time: no annealer of single ops finds the same.
  const Budget time = budget(true);
  if (const auto blocks = policy_.blocks(); !blocks.empty() && rng.below(2) == 0) {
    slot.next_chunk = std::min(slot.next_chunk, kBlockMoves);
    improve_by_blocks(task, start, blocks, slot.next_chunk, time, rng);
  } else {
    improve_by_search(task, start, time.at_most(slot.next_chunk), rng.bits());
  }
  if (repeatable() && time.out_of_time()) throw OutOfTime();
  slot.search_credit -= static_cast<double>(slot.next_chunk);
  slot.next_chunk = 0;
}

// Checkpoints.

std::string Trainer::method() const {
  std::string stages;
  for (const Stage stage : options_.stages) stages += fmt::format("{} ", to_string(stage));
  if (system_) {
    const SystemStageOptions& system = system_->options();
    stages +=
        fmt::format("runs {} repeats {} max-slowdown {} system batch {} rate {} entropy {} ", system.runs,
                    system.measuring.repeats, system.measuring.max_slowdown, system.batch, system.rate, system.entropy);
  }
  const LearnerOptions& learner = options_.learner;
  return fmt::format("{}teacher {} share {} batch {} rate {} {} entropy {} search {} self-imitation {} without {}",
                     stages, static_cast<int>(options_.teacher), options_.imitation_share, learner.batch, options_.rate,
                     options_.last_rate, options_.entropy, options_.expert_share, learner.self_imitation,
                     fmt::join(policy_.left_out(), " "));
}

bool Trainer::on_system() const { return system_ && system_->steps() > 0; }
Adam& Trainer::optimiser() { return (on_system() ? system_->learner() : learner_).optimiser(); }
const Adam& Trainer::optimiser() const { return (on_system() ? system_->learner() : learner_).optimiser(); }

namespace {

void add_found(const Task& task, nlohmann::ordered_json& entry) {
  entry["evaluations"] = task.evaluations();
  entry["best"] = {
      {"device_of_op", task.best().device_of_op}, {"priority", task.best().priority}, {"found_by", task.finder()}};
  entry["elites"] = nlohmann::json::array();
  for (const Elite& elite : task.elites())
    entry["elites"].push_back(
        {{"makespan", elite.makespan}, {"order", elite.order}, {"device_of_op", elite.device_of_op}});
}

nlohmann::ordered_json system_entry(const SystemStage& system) {
  nlohmann::ordered_json entry;
  entry["steps"] = system.steps();
  entry["runs"] = system.objective().used();
  add_found(system.task(), entry);
  if (const auto& verdict = system.verdict())
    entry["verdict"] = {{"changed", verdict->changed},
                        {"before", verdict->before},
                        {"after", verdict->after},
                        {"p", verdict->p},
                        {"finalists", verdict->finalists},
                        {"device_of_op", verdict->placement.device_of_op},
                        {"priority", verdict->placement.priority}};
  return entry;
}

}  // namespace

PolicyFile Trainer::save(double best_held_out) const {
  PolicyFile file = file_of(policy_);
  file.adam_mean.assign(optimiser().mean().begin(), optimiser().mean().end());
  file.adam_square.assign(optimiser().square().begin(), optimiser().square().end());
  nlohmann::ordered_json training;
  training["seed"] = options_.seed;
  training["method"] = method();
  training["updates"] = updates_;
  training["generated"] = generated_;
  training["optimiser_steps"] = optimiser().steps();
  training["seconds"] = seconds();
  if (std::isfinite(best_held_out)) training["best_held_out"] = best_held_out;
  for (const Slot& slot : slots_) {
    Task& task = *slot.task;
    nlohmann::ordered_json entry;
    entry["name"] = task.name();
    entry["fingerprint"] = task.fingerprint();
    entry["ops"] = task.problem().op_count();
    entry["devices"] = task.problem().device_count();
    entry["visits"] = slot.visits;
    entry["generation"] = slot.generation;
    entry["search_credit"] = slot.search_credit;
    entry["next_chunk"] = slot.next_chunk;
    add_found(task, entry);
    training["tasks"].push_back(std::move(entry));
  }
  if (system_) training["system"] = system_entry(*system_);
  // A file name need not be UTF-8.
  file.training = training.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return file;
}

namespace {

// `order` may be empty, or ranks or ids: each number once.
void check_entries(const std::string& where, const Problem& problem, const std::vector<DeviceId>& devices,
                   const std::vector<std::uint32_t>& order) {
  const auto outside = [](const std::vector<std::uint32_t>& values, std::uint32_t limit) {
    return std::any_of(values.begin(), values.end(), [&](std::uint32_t value) { return value >= limit; });
  };
  const auto repeated = [](std::vector<std::uint32_t> values) {
    std::sort(values.begin(), values.end());
    return std::adjacent_find(values.begin(), values.end()) != values.end();
  };
  const bool wrong = devices.size() != problem.op_count() || outside(devices, problem.device_count()) ||
                     (!order.empty() && order.size() != problem.op_count()) || outside(order, problem.op_count()) ||
                     repeated(order);
  if (wrong)
    throw InputError(fmt::format("{}: a placement does not belong to its graph; required a sound checkpoint", where));
}

// The parts of two texts that differ, from the last common word before them on: the name of what has another value.
std::pair<std::string, std::string> difference(const std::string& a, const std::string& b) {
  const auto words = [](const std::string& text) {
    std::vector<std::string> result(1);
    for (const char c : text)
      if (c == ' ')
        result.emplace_back();
      else
        result.back() += c;
    while (result.back().empty() && result.size() > 1) result.pop_back();
    return result;
  };
  const std::vector<std::string> first = words(a), second = words(b);
  std::size_t begin = 0, end = 0;
  while (begin < std::min(first.size(), second.size()) && first[begin] == second[begin]) ++begin;
  while (end < std::min(first.size(), second.size()) - begin &&
         first.rbegin()[static_cast<std::ptrdiff_t>(end)] == second.rbegin()[static_cast<std::ptrdiff_t>(end)])
    ++end;
  if (begin > 0) --begin;
  const auto part = [&](const std::vector<std::string>& all) {
    return fmt::format("{}", fmt::join(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                       all.end() - static_cast<std::ptrdiff_t>(end), " "));
  };
  return {part(first), part(second)};
}

void restore_found(const std::string& where, const nlohmann::json& entry, Task& task) {
  const Problem& problem = task.problem();
  Placement best;
  entry.at("best").at("device_of_op").get_to(best.device_of_op);
  entry.at("best").at("priority").get_to(best.priority);
  std::vector<Elite> elites;
  for (const auto& part : entry.at("elites")) {
    Elite elite{part.at("makespan").get<Seconds>(), part.at("order").get<std::vector<OpId>>(),
                part.at("device_of_op").get<std::vector<DeviceId>>()};
    check_entries(where, problem, elite.device_of_op, elite.order);
    elites.push_back(std::move(elite));
  }
  if (!elites.empty()) check_entries(where, problem, best.device_of_op, best.priority);
  task.restore(std::move(best), entry.at("best").at("found_by").get<std::string>(), std::move(elites),
               entry.at("evaluations").get<std::uint64_t>());
}

}  // namespace

void Trainer::restore(const std::string& where, const PolicyFile& file) {
  if (file.training.empty())
    throw InputError(fmt::format("{}: a policy without training state; required a checkpoint", where));
  if (file.architecture != policy_.architecture())
    throw InputError(fmt::format("{}: architecture '{}'; required '{}', as asked for", where, file.architecture,
                                 policy_.architecture()));
  if (file.parameters.size() != policy_.parameters().size() || file.adam_mean.size() != file.parameters.size())
    throw InputError(
        fmt::format("{}: {} parameters; required {}", where, file.parameters.size(), policy_.parameters().size()));
  try {
    const auto training = formats::parse_json(where, file.training, {});
    const auto& tasks = training.at("tasks");
    if (const auto then = training.at("method").get<std::string>(); then != method()) {
      const auto [found, required] = difference(then, method());
      throw InputError(fmt::format("{}: trained with '{}'; required '{}', as asked for", where, found, required));
    }
    if (training.at("seed") != options_.seed || tasks.size() != slots_.size())
      throw InputError(fmt::format("{}: seed {} and {} tasks; required seed {} and {} tasks, as asked for", where,
                                   training.at("seed").dump(), tasks.size(), options_.seed, slots_.size()));
    for (std::size_t i = 0; i < slots_.size(); ++i) restore_slot(where, &tasks[i], slots_[i]);
    updates_ = training.at("updates").get<std::uint64_t>();
    generated_ = training.at("generated").get<std::uint64_t>();
    if (system_) restore_system(where, &training.at("system"));
    optimiser().set_steps(training.at("optimiser_steps").get<std::uint64_t>());
    seconds_before_ = training.at("seconds").get<Seconds>();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{}: damaged training state ({}); required a checkpoint", where, error.what()));
  }
  started_ = now();
  std::copy(file.parameters.begin(), file.parameters.end(), policy_.parameters().begin());
  std::copy(file.adam_mean.begin(), file.adam_mean.end(), optimiser().mean().begin());
  std::copy(file.adam_square.begin(), file.adam_square.end(), optimiser().square().begin());
}

// `json` is a nlohmann::json, which stays out of the header.
void Trainer::restore_slot(const std::string& where, const void* json, Slot& slot) {
  const auto& entry = *static_cast<const nlohmann::json*>(json);
  slot.visits = entry.at("visits").get<std::uint64_t>();
  slot.search_credit = entry.at("search_credit").get<double>();
  slot.next_chunk = entry.at("next_chunk").get<std::uint64_t>();
  if (slot.generated) {
    slot.generation = entry.at("generation").get<std::uint64_t>();
    slot.task = generator_(stream(options_.seed, Stream::generation, slot.generation));
  }
  Task& task = *slot.task;
  const Problem& problem = task.problem();
  if (entry.at("fingerprint") != task.fingerprint())
    throw InputError(
        fmt::format("{}: was trained on {}, {} ops on {} devices; required the same graphs, machines with their "
                    "jitter, rules and objective as then, not '{}', {} ops on {} devices",
                    where, entry.at("name").dump(), entry.at("ops").dump(), entry.at("devices").dump(), task.name(),
                    problem.op_count(), problem.device_count()));
  restore_found(where, entry, task);
}

void Trainer::restore_system(const std::string& where, const void* json) {
  const auto& entry = *static_cast<const nlohmann::json*>(json);
  restore_found(where, entry, system_->task());
  std::optional<SystemVerdict> verdict;
  if (entry.contains("verdict")) {
    const auto& saved = entry.at("verdict");
    verdict.emplace();
    saved.at("changed").get_to(verdict->changed);
    saved.at("before").get_to(verdict->before);
    saved.at("after").get_to(verdict->after);
    saved.at("p").get_to(verdict->p);
    saved.at("finalists").get_to(verdict->finalists);
    saved.at("device_of_op").get_to(verdict->placement.device_of_op);
    saved.at("priority").get_to(verdict->placement.priority);
    check_entries(where, system_->task().problem(), verdict->placement.device_of_op, verdict->placement.priority);
  }
  system_->restore(entry.at("steps").get<std::uint64_t>(), entry.at("runs").get<std::uint64_t>(), std::move(verdict));
}

}  // namespace doppler
