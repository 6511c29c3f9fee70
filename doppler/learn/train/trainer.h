#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "doppler/budget.h"
#include "doppler/learn/train/learner.h"
#include "doppler/learn/train/policy_file.h"
#include "doppler/learn/train/system_stage.h"

namespace doppler {

enum class Stage : std::uint8_t { imitation, simulation, system };
std::string_view to_string(Stage stage);
Stage parse_stage(std::string_view text);  // throws InputError

enum class Teacher : std::uint8_t {
  critical_path,  // The rule of that name.
  heft,           // The rule of that name.
  best,           // The best placement of the cheap methods.
};
Teacher parse_teacher(std::string_view text);  // throws InputError

struct TrainingOptions {
  std::vector<Stage> stages = {Stage::imitation, Stage::simulation};
  // The first two stages: a number of updates, or a time. Rates and stages follow the part that is done, so only a
  // number of updates gives the same result every time.
  std::uint64_t updates = 0;
  Seconds time = 0;       // It counts if updates is 0.
  bool cpu_time = false;  // The time is that of the process on its processors, whatever else runs there.
  Teacher teacher = Teacher::critical_path;
  double imitation_share = 0.1;             // Imitation's share of the whole, if there is another stage.
  double rate = 3e-3, last_rate = 3e-4;     // The rate of Adam falls linearly from the one to the other.
  double entropy = 3e-3;                    // The weight of the entropy, which falls linearly to 0.
  double expert_share = 0.2;                // The share of the simulation stage's work that goes into search.
  std::uint64_t visits_per_generated = 24;  // Updates on one generated task before the next takes its place.
  std::uint64_t seed = 0;
  std::stop_token stop = {};  // Ends the training.
  LearnerOptions learner;
};

// What happened in one update.
struct TrainingReport {
  std::uint64_t update = 0;
  double done = 0;  // The part of the training that is done, from 0 to 1.
  Stage stage = Stage::imitation;
  std::string task;
  Seconds best = 0, bound = 0;          // The task's best so far, and its lower bound.
  std::uint64_t runs = 0, refused = 0;  // How often the system was run so far, and how often it was spared a run.
  UpdateReport result;
};

// Makes one more task. Every call gets a random generator of its own.
using TaskGenerator = std::function<std::unique_ptr<Task>(Rng)>;

// Trains one policy on tasks that take turns. Everything random comes from (seed, number of the update), so that a
// training that is saved and resumed does exactly what it would have done.
class Trainer {
 public:
  // `policy` must outlive it. Throws InputError if the policy cannot imitate the teacher.
  Trainer(Policy& policy, const TrainingOptions& options);

  // Tasks are visited in proportion to their weights; equal weights take turns. Throws InputError if a task is so large
  // that a batch of its episodes would not fit in memory.
  Task& add(std::unique_ptr<Task> task, double weight = 1);
  // Adds `count` slots for generated tasks.
  void add_generated(TaskGenerator generator, std::size_t count);
  // Says where the stage `system` runs placements of the first task, which must be there.
  SystemStage& use_system(std::shared_ptr<Executor> executor, const SystemStageOptions& options);
  SystemStage* system() { return system_.get(); }  // Null if there is none.

  bool finished() const;
  // Makes one update. There must be a task. Throws OutOfTime if it is interrupted, or if the time of the training is
  // over before: no parameter has changed then, and a training by updates will do the same once more when it is
  // resumed.
  TrainingReport step();
  // Makes one update unless the training is finished, interrupted, or out of time before the update is complete.
  std::optional<TrainingReport> advance();
  // Lets a training that was stopped go on, until this token says otherwise.
  void go_on(std::stop_token stop) { options_.stop = std::move(stop); }

  std::uint64_t updates() const { return updates_ + (system_ ? system_->steps() : 0); }
  std::uint64_t episodes() const { return updates_ * options_.learner.batch + (system_ ? system_->episodes() : 0); }
  Seconds seconds() const;  // The time spent since the first step, over all resumptions.
  std::size_t task_count() const { return slots_.size(); }
  Task& task(std::size_t i) { return *slots_[i].task; }

  const Policy& policy() const { return policy_; }
  // The state for a checkpoint, with the best score on held-out problems of whoever keeps that (infinity if nobody
  // does). restore() throws InputError naming `where` unless it was saved by a trainer with the same policy, tasks and
  // options.
  PolicyFile save(double best_held_out = Costs::kNever) const;
  void restore(const std::string& where, const PolicyFile& file);

 private:
  struct Slot {
    std::unique_ptr<Task> task;
    double weight = 1;
    std::uint64_t visits = 0;
    bool generated = false;
    std::uint64_t generation = 0;  // The number of the generated task.
    double search_credit = 0;      // Evaluations that expert iteration has saved up.
    std::uint64_t next_chunk = 0;  // How many of them it spends at once.
  };

  Seconds now() const;  // By the clock that counts.
  bool has(Stage stage) const;
  double done() const;  // The part of the stages that use the simulator.
  TrainingReport system_step();
  TrainingReport simulated_step(Slot& slot);
  Budget budget(bool timed) const;
  void remember(const Slot& slot);
  void go_back(Slot& slot);
  bool on_system() const;  // Stage III has begun.
  Adam& optimiser();       // The optimiser of the stage that is on.
  const Adam& optimiser() const;
  Slot& next_slot();
  void generate(Slot& slot);
  void seek_expert(Slot& slot, Rng rng);
  double search_per_update(const Task& task) const;  // The evaluations that expert iteration may make for an update.
  void ask_cheap_methods(Task& task, std::uint64_t tries);
  bool repeatable() const { return options_.updates > 0; }
  UpdateReport update(Slot& slot, Stage stage, double done, Rng rng);
  void restore_slot(const std::string& where, const void* json, Slot& slot);
  void restore_system(const std::string& where, const void* json);
  // Describes what decides how a training goes on, beside its length.
  std::string method() const;

  Policy& policy_;
  TrainingOptions options_;
  Learner learner_;
  TaskGenerator generator_;
  std::vector<Slot> slots_;
  std::unique_ptr<SystemStage> system_;
  std::uint64_t updates_ = 0, generated_ = 0;

  // What an update changes beside the policy, as it was before: an update that is interrupted is made again.
  struct Before {
    std::uint64_t generated = 0, generation = 0, next_chunk = 0, evaluations = 0;
    double search_credit = 0;
    Placement best;
    std::string finder;
    std::vector<Elite> elites;
  } before_;
  Seconds seconds_before_ = 0;
  bool begun_ = false;   // Loading graphs does not count.
  Seconds started_ = 0;  // By now().
};

}  // namespace doppler
