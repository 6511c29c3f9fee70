#include "doppler/engine/runtime/runtime.h"

#include <algorithm>
#include <condition_variable>
#include <new>
#include <thread>

#include "doppler/base/error.h"
#include "doppler/base/run_queue.h"
#include "doppler/engine/runtime/courier.h"
#include "doppler/engine/runtime/device_kind.h"
#include "doppler/engine/runtime/stall_report.h"
#include "doppler/engine/runtime/worker.h"
#include "doppler/executor.h"
#include "doppler/sim/memory.h"

namespace doppler {

// The threads and what they share. The runtime and every thread hold it, so that a kernel that never returns finds its
// buffers in place.
class Runtime::Crew : public std::enable_shared_from_this<Crew> {
 public:
  Crew(const Problem& problem, std::shared_ptr<DeviceKind> kind, const RuntimeOptions& options)
      : run_(problem, std::move(kind), options) {
    for (unsigned courier = 0; courier < run_.courier_count(); ++courier)
      couriers_.push_back(run_.kind->make_courier(run_, courier));
    for (DeviceId device = 0; device < run_.devices; ++device)
      workers_.emplace_back(run_, device, run_.one_courier ? nullptr : couriers_[run_.courier_of(device)].get());
  }

  // Starts the threads, which wait for a run.
  void hire() {
    try {
      for (unsigned i = 0; i < run_.thread_count(); ++i)
        threads_.emplace_back([crew = shared_from_this(), i] { crew->thread_main(i); });
    } catch (...) {
      dismiss();  // those that could be made
      throw;
    }
  }
  // Ends the threads; one whose kernel never returned is left to itself.
  void dismiss() {
    quit_.store(true);
    epoch_.fetch_add(1);
    epoch_.notify_all();
    for (std::thread& thread : threads_) lost_ ? thread.detach() : thread.join();
  }

  const Problem& problem() const { return run_.problem; }

  Seconds execute(const Placement& placement) {
    if (lost_) throw InternalError("run: a kernel of an earlier run never returned; required a new executor");
    timed_ = stalled_ = false;
    run_.prepare(placement);
    for (Worker& worker : workers_) worker.prepare();
    for (const auto& courier : couriers_) courier->prepare();
    run_.kernels.start();
    done_ = 0;
    arrived_.store(0);
    epoch_.fetch_add(1);
    epoch_.notify_all();
    watch();
    run_.stop_all();
    wait_for_all();
    if (run_.error) std::rethrow_exception(run_.error);
    if (run_.deadlocked) throw InfeasibleError(describe_deadlock(run_, workers_, couriers_));
    timed_ = true;
    Ticks last = 0;
    for (const SharedRun::OpRecord& record : run_.op_records) last = std::max(last, record.end);
    return seconds(last);
  }

  Timeline timeline() const {
    DOPPLER_CHECK(timed_, "there is no run to show");
    Timeline result;
    for (OpId op = 0; op < run_.graph.op_count(); ++op) {
      const SharedRun::OpRecord& record = run_.op_records[op];
      result.executions.push_back(
          {op, run_.routes.device(op), 0, seconds(record.ready), seconds(record.start), seconds(record.end)});
      result.makespan = std::max(result.makespan, seconds(record.end));
    }
    for (std::uint32_t id = 0; id < run_.routes.transfer_count(); ++id) {
      const Routes::Transfer& move = run_.routes.transfer(id);
      const SharedRun::TransferRecord& record = run_.transfer_records[id];
      result.transfers.push_back({move.tensor, move.src, move.dst, record.channel, seconds(record.queued),
                                  seconds(record.start), seconds(record.end)});
    }
    std::sort(result.executions.begin(), result.executions.end(), [](const auto& a, const auto& b) {
      return std::tie(a.start, a.device, a.op) < std::tie(b.start, b.device, b.op);
    });
    std::sort(result.transfers.begin(), result.transfers.end(), [](const auto& a, const auto& b) {
      return std::tie(a.start, a.tensor, a.dst) < std::tie(b.start, b.tensor, b.dst);
    });
    account_memory(run_.problem, result);
    result.overflow.reset();  // the arenas did not allow any; the account has only the stamps to go by
    for (DeviceId device = 0; device < run_.devices; ++device) {
      result.peak_memory[device] = run_.arenas[device].peak();
      result.busy[device] += seconds(workers_[device].folding());
      result.others.push_back(seconds(others_[device]));
    }
    return result;
  }

 private:
  Seconds seconds(Ticks ticks) const { return static_cast<double>(ticks) * 1e-9 / run_.kind->time_scale(); }

  void thread_main(unsigned index) {
    const bool works = index < run_.devices;
    run_.kind->settle(works ? std::optional<DeviceId>(index) : std::nullopt);
    const RunQueueClock clock;
    for (std::uint64_t seen = 0;;) {
      epoch_.wait(seen);
      seen = epoch_.load();
      if (quit_.load()) return;
      start_together(seen);
      const std::uint64_t before = works ? clock.waited() : 0;
      try {
        works ? work(workers_[index]) : couriers_[index - run_.devices]->work();
      } catch (...) {
        run_.fail(std::current_exception());
      }
      if (works) others_[index] = static_cast<Ticks>(clock.waited() - before);
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }

  // Starts the clock when the last thread is there.
  void start_together(std::uint64_t epoch) {
    if (arrived_.fetch_add(1) + 1 == run_.thread_count()) {
      run_.begin = std::chrono::steady_clock::now();
      gate_.store(epoch);
    } else {
      while (gate_.load() != epoch) std::this_thread::yield();
    }
  }

  void work(Worker& worker) {
    try {
      worker.work();
    } catch (const std::bad_alloc&) {
      throw;  // no fault of the kernel
    } catch (const DeviceGone&) {
      throw;                             // it says which by itself
    } catch (const InputError& error) {  // data that does not fit, such as an index outside of its tensor
      const OpId op = worker.current();
      if (op == Worker::kNoOp) throw;
      throw InputError(describe(op, worker.device(), error.what()));
    } catch (const std::exception& error) {
      const OpId op = worker.current();
      if (op == Worker::kNoOp) throw;  // it did not come from a kernel
      throw InternalError(describe(op, worker.device(), error.what()));
    } catch (...) {
      throw InternalError(describe(worker.current(), worker.device(), "an exception that is no std::exception"));
    }
    if (run_.unfinished.fetch_sub(1) == 1) {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    } else if (run_.parking.one_more_asleep() && run_.unfinished.load() > 0) {
      run_.deadlock();
    }
  }

  std::string describe(OpId op, DeviceId device, const char* what) const {
    return fmt::format("op '{}' on device '{}': {}", run_.graph.name(op), run_.problem.machine().device(device).name,
                       what);
  }

  // Waits until the workers are done or have been stopped, and stops them if they must be.
  void watch() {
    constexpr auto kLook = std::chrono::milliseconds(50);
    const Seconds limit = run_.options.stall_after + run_.kind->longest_step(run_.routes);
    std::uint64_t progress = 0;
    auto since = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    while (run_.unfinished.load() > 0 && !run_.stopped()) {
      changed_.wait_for(lock, kLook);
      const auto now = std::chrono::steady_clock::now();
      if (run_.options.stop.stop_requested()) run_.fail(std::make_exception_ptr(RunCancelled("run: interrupted")));
      std::uint64_t done = 0;
      for (const Worker& worker : workers_) done += worker.executed() + worker.copied();
      if (done != progress) progress = done, since = now;
      if (std::chrono::duration<double>(now - since).count() > limit) {
        stalled_ = true;
        run_.fail(std::make_exception_ptr(InternalError(describe_stall(run_, workers_))));
      }
    }
  }

  // Waits until all threads have left the run. After a stall, a kernel that does not return within the grace time is
  // given up with its thread.
  void wait_for_all() {
    constexpr auto kGrace = std::chrono::seconds(2);
    std::unique_lock lock(mutex_);
    const auto all = [this] { return done_ == run_.thread_count(); };
    if (stalled_) {
      lost_ = !changed_.wait_for(lock, kGrace, all);
    } else {
      changed_.wait(lock, all);
    }
  }

  SharedRun run_;
  std::deque<Worker> workers_;
  std::vector<std::unique_ptr<Courier>> couriers_;
  std::vector<std::thread> threads_;
  std::vector<Ticks> others_ = std::vector<Ticks>(run_.devices, 0);  // by worker; read when all have left the run
  std::atomic<std::uint64_t> epoch_{0};                              // the number of runs that have begun
  std::atomic<std::uint64_t> gate_{0};                               // the last run whose threads were all there
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<bool> quit_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned done_ = 0;  // threads that have left the run
  bool stalled_ = false, lost_ = false, timed_ = false;
};

Runtime::Runtime(const Problem& problem, std::shared_ptr<DeviceKind> kind, const RuntimeOptions& options) {
  if (const auto why = obstacle(problem)) throw InputError(*why);
  crew_ = std::make_shared<Crew>(problem, std::move(kind), options);
  crew_->hire();
}

Runtime::~Runtime() { crew_->dismiss(); }

std::optional<std::string> Runtime::obstacle(const Problem& problem) {
  const Machine& machine = problem.machine();
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    if (const Device& device = machine.device(id); device.slots != 1)
      return fmt::format("machine '{}': device '{}' has {} slots; required 1, an engine runs one op at a time",
                         machine.name(), device.name, device.slots);
  return std::nullopt;
}

const Problem& Runtime::problem() const { return crew_->problem(); }
Seconds Runtime::execute(const Placement& placement) { return crew_->execute(placement); }
Timeline Runtime::timeline() const { return crew_->timeline(); }

}  // namespace doppler
