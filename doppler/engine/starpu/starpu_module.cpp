// StarPU as a TaskEngine: a task per op, a handle per tensor, and a scheduling policy that puts every task where the
// placement says, in the order that the discipline says.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <malloc.h>
#include <mutex>
#include <queue>
#include <starpu.h>

#include "doppler/engine/starpu/task_engine.h"

namespace doppler {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{50};  // how often the waiting thread asks whether to go on

class StarpuEngine;

// What a task knows of itself.
struct TaskContext {
  StarpuEngine* engine = nullptr;
  std::uint32_t op = 0;
};

// The tasks of one device that are ready.
struct ReadyTasks {
  struct Entry {
    std::uint64_t key;  // smaller first: when it became ready, or its rank
    starpu_task* task;
    bool operator>(const Entry& other) const { return key > other.key; }
  };
  std::mutex mutex;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries;
  bool strict = false;
  std::vector<std::uint32_t> ranks;  // of the device's tasks, sorted: where the order is strict
  std::size_t begun = 0;
};

// StarPU itself, of which a process has one: its workers, and the queues that they take their tasks from. It lives as
// long as an engine does.
class Session {
 public:
  // Returns the one that there is, or starts it.
  static std::shared_ptr<Session> get() {
    static std::mutex mutex;
    static std::weak_ptr<Session> there;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Session> session = there.lock();
    if (session == nullptr) there = session = std::shared_ptr<Session>(new Session);
    return session;
  }
  ~Session() {
    if (started_ && !lost) starpu_shutdown();
  }

  std::uint32_t devices() const { return static_cast<std::uint32_t>(workers_.size()); }
  int worker(std::uint32_t device) const { return workers_[device]; }
  ReadyTasks& ready(std::uint32_t device) { return ready_[device]; }

  std::mutex one_run;  // Who runs tasks has the queues for himself.
  bool lost = false;   // Tasks of a run that was given up may still run.

 private:
  Session() {
    // StarPU asks malloc() for every tensor anew; pages that it has had once are to stay.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
    setenv("STARPU_SILENT", "1", 0);  // it would write to standard error by itself
    policy_.push_task = &push;
    policy_.pop_task = &pop;
    policy_.init_sched = [](unsigned context) { starpu_sched_ctx_set_policy_data(context, nullptr); };
    policy_.deinit_sched = [](unsigned) {};
    policy_.policy_name = "doppler";
    policy_.policy_description = "every task where a placement says";
    policy_.worker_type = STARPU_WORKER_LIST;
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncuda = conf.nopencl = 0;
    conf.catch_signals = 0;  // the command has its own
    conf.sched_policy = &policy_;
    conf.bus_calibrate = 0;
    if (starpu_init(&conf) != 0) return;
    started_ = true;
    workers_.resize(starpu_cpu_worker_get_count());
    starpu_worker_get_ids_by_type(STARPU_CPU_WORKER, workers_.data(), static_cast<unsigned>(workers_.size()));
    ready_ = std::vector<ReadyTasks>(workers_.size());
    device_of_worker_.resize(starpu_worker_get_count());
    for (std::uint32_t device = 0; device < workers_.size(); ++device) device_of_worker_[workers_[device]] = device;
    starpu_sched_ctx_set_policy_data(0, this);
  }

  static int push(starpu_task* task);

  static starpu_task* pop(unsigned context) {
    auto* session = static_cast<Session*>(starpu_sched_ctx_get_policy_data(context));
    if (session == nullptr) return nullptr;  // the workers are there before the constructor is done
    ReadyTasks& ready = session->ready_[session->device_of_worker_[starpu_worker_get_id()]];
    const std::lock_guard lock(ready.mutex);
    if (ready.entries.empty() || (ready.strict && ready.entries.top().key != ready.ranks[ready.begun])) return nullptr;
    starpu_task* task = ready.entries.top().task;
    ready.entries.pop();
    ++ready.begun;
    return task;
  }

  starpu_sched_policy policy_ = {};
  bool started_ = false;
  std::vector<int> workers_;  // by device
  std::vector<std::uint32_t> device_of_worker_;
  std::vector<ReadyTasks> ready_;  // by device
};

class StarpuEngine final : public TaskEngine {
 public:
  explicit StarpuEngine(Order order) : order_(order), session_(Session::get()) {
    starpu_codelet_init(&codelet_);
    codelet_.cpu_funcs[0] = &StarpuEngine::execute;
    codelet_.nbuffers = STARPU_VARIABLE_NBUFFERS;
    codelet_.name = "doppler";
  }

  std::uint32_t devices() const override { return session_->devices(); }

  bool run(const Job& job, const Work& work, const GoOn& go_on, std::vector<Record>& records) override {
    const std::lock_guard alone(session_->one_run);
    if (session_->lost) return false;
    job_ = &job;
    work_ = &work;
    records_ = &records;
    records.assign(job.tasks.size(), {});
    ended_ = 0;
    arrivals_ = 0;
    lay_out(job);
    begin_ = Clock::now();
    session_->lost = !submit(job) || !wait_for_all(go_on);
    if (session_->lost) return false;
    starpu_task_wait_for_all();
    return true;
  }

  // Puts a task that is ready where its device's worker looks.
  void take(starpu_task* task, std::uint32_t op) {
    const Task& placed = job_->tasks[op];
    (*records_)[op].ready = since_begin();
    ReadyTasks& ready = session_->ready(placed.device);
    {
      const std::lock_guard lock(ready.mutex);
      ready.entries.push({order_ == Order::as_ready ? arrivals_++ : placed.rank, task});
      starpu_push_task_end(task);  // before a worker can take it
    }
    starpu_wake_worker_relax_light(session_->worker(placed.device));
  }

 private:
  void lay_out(const Job& job) {
    contexts_.resize(job.tasks.size());
    for (std::uint32_t op = 0; op < job.tasks.size(); ++op) contexts_[op] = {this, op};
    for (std::uint32_t device = 0; device < devices(); ++device) {
      ReadyTasks& ready = session_->ready(device);
      const std::lock_guard lock(ready.mutex);
      ready.strict = order_ == Order::strictly_by_rank;
      ready.ranks.clear();
      ready.begun = 0;
      for (const Task& task : job.tasks)
        if (task.device == device) ready.ranks.push_back(task.rank);
      std::sort(ready.ranks.begin(), ready.ranks.end());
    }
  }

  // StarPU finds dependencies by what tasks read and write, in the order of submission; a tensor's memory is given back
  // as soon as the last task that was submitted for it has ended. Returns false if it does not take a task.
  bool submit(const Job& job) {
    std::vector<starpu_data_handle_t> handles(job.bytes.size());
    for (std::size_t tensor = 0; tensor < handles.size(); ++tensor)
      if (job.bytes[tensor] == 0)
        starpu_void_data_register(&handles[tensor]);
      else
        starpu_variable_data_register(&handles[tensor], -1, 0, job.bytes[tensor]);
    std::vector<std::uint32_t> readers_left = job.readers;
    for (const std::uint32_t op : job.order) {
      const Task& task = job.tasks[op];
      if (!submit_task(task, op, handles)) return false;
      for (const std::uint32_t tensor : task.outputs)
        if (readers_left[tensor] == 0) starpu_data_unregister_submit(handles[tensor]);
      for (const std::uint32_t tensor : task.inputs)
        if (--readers_left[tensor] == 0) starpu_data_unregister_submit(handles[tensor]);
    }
    return true;
  }

  bool submit_task(const Task& task, std::uint32_t op, const std::vector<starpu_data_handle_t>& handles) {
    starpu_task* made = starpu_task_create();
    made->cl = &codelet_;
    made->cl_arg = &contexts_[op];
    made->nbuffers = static_cast<int>(task.inputs.size() + task.outputs.size());
    // StarPU frees them with the task.
    made->dyn_handles = static_cast<starpu_data_handle_t*>(std::malloc(made->nbuffers * sizeof(starpu_data_handle_t)));
    made->dyn_modes =
        static_cast<starpu_data_access_mode*>(std::malloc(made->nbuffers * sizeof(starpu_data_access_mode)));
    int buffer = 0;
    for (const std::uint32_t tensor : task.inputs)
      made->dyn_handles[buffer] = handles[tensor], made->dyn_modes[buffer++] = STARPU_R;
    for (const std::uint32_t tensor : task.outputs)
      made->dyn_handles[buffer] = handles[tensor], made->dyn_modes[buffer++] = STARPU_W;
    return starpu_task_submit(made) == 0;
  }

  bool wait_for_all(const GoOn& go_on) {
    std::unique_lock lock(mutex_);
    while (ended_ < job_->tasks.size()) {
      ended_changed_.wait_for(lock, kLook);
      if (ended_ < job_->tasks.size() && !go_on(ended_)) return false;
    }
    return true;
  }

  double since_begin() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  static void execute(void** buffers, void* argument) {
    const auto* context = static_cast<const TaskContext*>(argument);
    StarpuEngine& engine = *context->engine;
    const Task& task = engine.job_->tasks[context->op];
    Record& record = (*engine.records_)[context->op];
    thread_local std::vector<std::byte*> data;
    data.clear();
    for (const std::vector<std::uint32_t>* tensors : {&task.inputs, &task.outputs})
      for (const std::uint32_t tensor : *tensors)
        data.push_back(engine.job_->bytes[tensor] == 0
                           ? nullptr
                           : reinterpret_cast<std::byte*>(STARPU_VARIABLE_GET_PTR(buffers[data.size()])));
    record.start = engine.since_begin();
    (*engine.work_)(context->op, task.device, data.data(), data.data() + task.inputs.size());
    record.end = engine.since_begin();
    if (const std::lock_guard lock(engine.mutex_); ++engine.ended_ == engine.job_->tasks.size())
      engine.ended_changed_.notify_one();
  }

  const Order order_;
  const std::shared_ptr<Session> session_;
  starpu_codelet codelet_;

  // The run.
  const Job* job_ = nullptr;
  const Work* work_ = nullptr;
  std::vector<Record>* records_ = nullptr;
  std::vector<TaskContext> contexts_;
  Clock::time_point begin_;
  std::atomic<std::uint64_t> arrivals_{0};
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  std::uint32_t ended_ = 0;
};

int Session::push(starpu_task* task) {
  const auto* context = static_cast<const TaskContext*>(task->cl_arg);
  context->engine->take(task, context->op);
  return 0;
}

}  // namespace
}  // namespace doppler

extern "C" doppler::TaskEngine* doppler_make_task_engine(doppler::TaskEngine::Order order) {
  auto engine = std::make_unique<doppler::StarpuEngine>(order);
  return engine->devices() > 0 ? engine.release() : nullptr;
}
