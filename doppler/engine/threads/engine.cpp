#include "doppler/engine/threads/engine.h"

#include <algorithm>
#include <condition_variable>
#include <thread>

#include "doppler/base/error.h"
#include "doppler/base/pin_thread.h"
#include "doppler/engine/threads/courier.h"
#include "doppler/engine/threads/stall_report.h"
#include "doppler/engine/threads/worker.h"
#include "doppler/sim/memory.h"

namespace doppler {

// The threads and what they share. Held by the engine and by every thread, so that a kernel that never returns finds
// its buffers in place.
class Engine::Crew : public std::enable_shared_from_this<Crew> {
 public:
  Crew(const Problem& problem, Kernels& kernels, const EngineOptions& options) : run_(problem, kernels, options) {
    for (unsigned courier = 0; courier < run_.courier_count(); ++courier) {
      if (run_.one_courier())
        couriers_.push_back(std::make_unique<EmulatedCourier>(run_, courier));
      else
        couriers_.push_back(std::make_unique<CopyCourier>(run_, courier));
    }
    for (DeviceId device = 0; device < run_.devices; ++device)
      workers_.emplace_back(run_, device, run_.one_courier() ? nullptr : couriers_[run_.courier_of(device)].get());
  }

  void hire() {
    try {
      for (unsigned i = 0; i < run_.thread_count(); ++i)
        threads_.emplace_back([crew = shared_from_this(), i] { crew->thread_main(i); });
    } catch (...) {
      dismiss();  // those that could be made
      throw;
    }
  }
  void dismiss() {
    quit_.store(true);
    epoch_.fetch_add(1);
    epoch_.notify_all();
    for (std::thread& thread : threads_) lost_ ? thread.detach() : thread.join();
  }

  bool lost() const { return lost_; }
  const Problem& problem() const { return run_.problem; }

  Seconds execute(const Placement& placement) {
    if (lost_) throw InternalError("engine: a kernel of an earlier run never returned; required a new engine");
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
    DOPPLER_CHECK(timed_, "the engine has no run to show");
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
    }
    return result;
  }

 private:
  Seconds seconds(Ticks ticks) const {
    return static_cast<double>(ticks) * 1e-9 / (run_.emulated() ? run_.options.time_scale : 1);
  }

  void thread_main(unsigned index) {
    const bool works = index < run_.devices;
    if (works && !run_.emulated()) pin_thread(index);
    if (run_.emulated()) sleep_precisely();
    for (std::uint64_t seen = 0;;) {
      epoch_.wait(seen);
      seen = epoch_.load();
      if (quit_.load()) return;
      start_together(seen);
      try {
        works ? work(workers_[index]) : couriers_[index - run_.devices]->work();
      } catch (...) {
        run_.fail(std::current_exception());
      }
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }

  // The clock starts when the last thread is there.
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
    } catch (const std::exception& error) {
      const OpId op = worker.current();
      if (op == Worker::kNoOp) throw;  // not a kernel's
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

  // An emulated op or transfer may take longer than anybody would wait for a real one.
  Seconds patience() const {
    if (!run_.emulated()) return run_.options.stall_after;
    const Costs& costs = run_.problem.costs();
    Seconds longest = 0;
    for (const Routes::Transfer& move : run_.routes.transfers())
      longest = std::max(longest, costs.transfer_time(move.tensor, move.src, move.dst));
    for (OpId op = 0; op < run_.graph.op_count(); ++op)
      longest = std::max(longest, costs.op_time(op, run_.routes.device(op)));
    constexpr double kNoiseAndSlowdown = 10;
    return run_.options.stall_after + kNoiseAndSlowdown * longest * run_.options.time_scale;
  }

  // Until the workers are done, or have been stopped, or must be.
  void watch() {
    constexpr auto kLook = std::chrono::milliseconds(50);
    const Seconds limit = patience();
    std::uint64_t progress = 0;
    auto since = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    while (run_.unfinished.load() > 0 && !run_.stopped()) {
      changed_.wait_for(lock, kLook);
      const auto now = std::chrono::steady_clock::now();
      if (run_.options.interrupted != nullptr && run_.options.interrupted->load())
        run_.fail(std::make_exception_ptr(RunCancelled("run: interrupted")));
      std::uint64_t done = 0;
      for (const Worker& worker : workers_) done += worker.executed() + worker.copied();
      if (done != progress) progress = done, since = now;
      if (std::chrono::duration<double>(now - since).count() > limit) {
        stalled_ = true;
        run_.fail(std::make_exception_ptr(InternalError(describe_stall(run_, workers_))));
      }
    }
  }

  // After a stall a kernel that does not return within the grace time is given up with its thread; otherwise it will
  // return.
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
  std::atomic<std::uint64_t> epoch_{0}, gate_{0};  // runs begun; runs whose threads are all there
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<bool> quit_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned done_ = 0;  // threads that have left the run
  bool stalled_ = false, lost_ = false, timed_ = false;
};

Engine::Engine(const Problem& problem, Kernels& kernels, EngineOptions options)
    : crew_(std::make_shared<Crew>(problem, kernels, options)) {
  crew_->hire();
}

Engine::~Engine() { crew_->dismiss(); }

bool Engine::lost() const { return crew_->lost(); }
const Problem& Engine::problem() const { return crew_->problem(); }
Seconds Engine::execute(const Placement& placement) { return crew_->execute(placement); }
Timeline Engine::timeline() const { return crew_->timeline(); }

}  // namespace doppler
