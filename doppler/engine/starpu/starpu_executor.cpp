#include "doppler/engine/starpu/starpu_executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>

#include "doppler/base/error.h"
#include "doppler/base/module.h"
#include "doppler/base/pin_thread.h"
#include "doppler/engine/starpu/task_engine.h"
#include "doppler/sim/memory.h"

namespace doppler {
namespace {

constexpr Module kStarpu{.name = "doppler_starpu",
                         .wanted = "--engine starpu",
                         .required = "a build with StarPU: apt install libstarpu-dev, then make"};

TaskEngine::Order order_of(Discipline discipline) {
  if (discipline == Discipline::priority) return TaskEngine::Order::by_rank;
  return discipline == Discipline::ordered ? TaskEngine::Order::strictly_by_rank : TaskEngine::Order::as_ready;
}

// Where the kernels hold the tensors themselves, tasks pass on the news of them alone.
TaskEngine::Job job_of(const Problem& problem, const Placement& placement, bool news_only) {
  const Graph& graph = problem.graph();
  TaskEngine::Job job;
  job.tasks.resize(graph.op_count());
  job.readers.assign(graph.tensor_count(), 0);
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    job.bytes.push_back(news_only ? 0 : graph.bytes(tensor));
  for (OpId op = 0; op < graph.op_count(); ++op) {
    TaskEngine::Task& task = job.tasks[op];
    task.device = placement.device_of_op[op];
    task.rank = placement.priority.empty() ? op : placement.priority[op];
    task.inputs.assign(graph.inputs(op).begin(), graph.inputs(op).end());
    for (const TensorId tensor : graph.outputs(op)) task.outputs.push_back(tensor);
    for (const std::uint32_t tensor : task.inputs) ++job.readers[tensor];
  }
  job.order.assign(graph.topological_order().begin(), graph.topological_order().end());
  return job;
}

// Tensors are handed over when their producer has ended; a hand-over takes no time.
void add_hand_overs(const Graph& graph, const Placement& placement, const std::vector<TaskEngine::Record>& records,
                    Timeline& timeline) {
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
    const DeviceId src = placement.device_of_op[graph.producer(tensor)];
    std::vector<DeviceId> there;
    for (const OpId consumer : graph.consumers(tensor)) {
      const DeviceId dst = placement.device_of_op[consumer];
      if (dst == src || std::find(there.begin(), there.end(), dst) != there.end()) continue;
      there.push_back(dst);
      const Seconds at = records[graph.producer(tensor)].end;
      timeline.transfers.push_back(
          {.tensor = tensor, .src = src, .dst = dst, .channel = 0, .queued = at, .start = at, .end = at});
    }
  }
  std::stable_sort(timeline.transfers.begin(), timeline.transfers.end(),
                   [](const Timeline::Transfer& a, const Timeline::Transfer& b) { return a.start < b.start; });
}

std::optional<std::string> obstacle_of_rules(const Problem& problem) {
  if (problem.rules().discipline != Discipline::random && !problem.rules().bulk_synchronous) return std::nullopt;
  return fmt::format(
      "graph '{}': found discipline random or barriers; required fifo, priority or ordered with --engine starpu",
      problem.graph().title());
}

Timeline timeline_of(const Problem& problem, const Placement& placement,
                     const std::vector<TaskEngine::Record>& records) {
  Timeline timeline;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const auto& [ready, start, end] = records[op];
    timeline.executions.push_back(
        {.op = op, .device = placement.device_of_op[op], .slot = 0, .ready = ready, .start = start, .end = end});
    timeline.makespan = std::max(timeline.makespan, end);
  }
  std::stable_sort(timeline.executions.begin(), timeline.executions.end(),
                   [](const Timeline::Execution& a, const Timeline::Execution& b) { return a.start < b.start; });
  add_hand_overs(problem.graph(), placement, records, timeline);
  account_memory(problem, timeline);
  timeline.overflow.reset();  // capacities are not enforced
  return timeline;
}

}  // namespace

// What the tasks of a run share with whoever waits for them.
struct StarpuExecutor::Run {
  Problem problem;  // by sharing
  std::shared_ptr<Kernels> kernels;
  TaskEngine::Job job = {};
  TaskEngine::Work work = {};
  std::vector<TaskEngine::Record> records = {};
  std::atomic<bool> stopped{false};
  std::mutex mutex = {};
  std::exception_ptr error = nullptr;

  // Once something has failed, the other tasks only pass by: StarPU cannot take them back.
  void execute(std::uint32_t op, std::uint32_t device, const std::byte* const* inputs, std::byte* const* outputs) {
    if (stopped.load(std::memory_order_relaxed)) return;
    try {
      const TaskEngine::Task& task = job.tasks[op];
      kernels->run(op, device, {{inputs, task.inputs.size()}, {outputs, task.outputs.size()}});
    } catch (const std::bad_alloc&) {
      fail(std::current_exception());
    } catch (const InputError& what) {  // data that does not fit
      fail(std::make_exception_ptr(InputError(describe(op, device, what.what()))));
    } catch (const std::exception& what) {
      fail(std::make_exception_ptr(InternalError(describe(op, device, what.what()))));
    }
  }

  std::string describe(std::uint32_t op, std::uint32_t device, const char* what) const {
    return fmt::format("op '{}' on device '{}': {}", problem.graph().name(op), problem.machine().device(device).name,
                       what);
  }

  void fail(std::exception_ptr what) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(what);
    stopped = true;
  }
};

StarpuExecutor::StarpuExecutor(const Problem& problem, ThreadsOptions options)
    : problem_(problem), stall_after_(options.stall_after), stop_(options.stop) {
  if (const auto why = options.kernels == nullptr ? obstacle(problem) : obstacle_of_rules(problem))
    throw InputError(*why);
  if (options.kernels == nullptr) computing_ = make_kernels(problem, options);
  kernels_ = options.kernels == nullptr ? computing_ : options.kernels;
  const auto make =
      reinterpret_cast<MakeTaskEngine>(open_module(kStarpu, library_directory(), "doppler_make_task_engine"));
  engine_.reset(make(order_of(problem.rules().discipline)));
  if (engine_ == nullptr || engine_->devices() < problem.device_count())
    throw InputError(fmt::format("--engine starpu: found {} devices; required at most {}, StarPU's workers on this box",
                                 problem.device_count(), engine_ == nullptr ? 0 : engine_->devices()));
}

StarpuExecutor::~StarpuExecutor() = default;

std::optional<std::string> StarpuExecutor::obstacle(const Problem& problem) {
  if (auto why = obstacle_of_rules(problem)) return why;
  return ThreadsExecutor::obstacle(problem);
}

ExecutorLimits StarpuExecutor::limits() const { return {.computes = true, .undisturbed_devices = usable_cores()}; }

Timeline StarpuExecutor::run(const Placement& placement) {
  if (engine_ == nullptr) throw InternalError("starpu: a task of an earlier run has not ended; this engine is lost");
  if (run_ == nullptr) run_ = std::shared_ptr<Run>(new Run{problem_, kernels_});
  Run& run = *run_;
  run.job = job_of(problem_, placement, kernels_->hold_tensors());
  run.stopped = false;
  run.error = nullptr;
  run.work = [&run](std::uint32_t op, std::uint32_t device, const std::byte* const* inputs, std::byte* const* outputs) {
    run.execute(op, device, inputs, outputs);
  };
  std::uint32_t last = 0;
  auto since = std::chrono::steady_clock::now();
  const auto go_on = [&](std::uint32_t ended) {
    const auto now = std::chrono::steady_clock::now();
    if (ended != last) last = ended, since = now;
    if (stop_.stop_requested()) run.stopped = true;
    return std::chrono::duration<double>(now - since).count() < stall_after_;
  };
  kernels_->start();
  const bool ended = engine_->run(run.job, run.work, go_on, run.records);
  kernels_->cancel();
  if (!ended) {
    // Its tasks may still run: what they use stays for good.
    new std::shared_ptr<Run>(run_);
    new std::shared_ptr<TaskEngine>(engine_);
    engine_ = nullptr;
    throw InternalError(fmt::format("starpu: no op ended for {}; {} of {} had", format_seconds(stall_after_), last,
                                    problem_.op_count()));
  }
  if (run.error) std::rethrow_exception(run.error);
  if (stop_.stop_requested()) throw RunCancelled("run: interrupted");
  return timeline_of(problem_, placement, run.records);
}

void StarpuExecutor::results(const Placement& placement, const TakeResult& take) {
  DOPPLER_CHECK(computing_ != nullptr, "results of ops that compute no program");
  computing_->keep_results(true);
  try {
    run(placement);
  } catch (...) {
    computing_->keep_results(false);
    throw;
  }
  computing_->keep_results(false);
  computing_->take_results(take);
}

}  // namespace doppler
