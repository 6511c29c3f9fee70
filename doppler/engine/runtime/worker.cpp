#include "doppler/engine/runtime/worker.h"

#include <algorithm>

namespace doppler {
namespace {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Worker::Worker(SharedRun& run, DeviceId device, Courier* courier)
    : run_(run),
      device_(device),
      arena_(run.arenas[device]),
      courier_(courier),
      spins_(run.kind->spins(run.thread_count())),
      inputs_(run.routes.most_inputs()),
      outputs_(run.routes.most_outputs()) {
  folds_early_ = arena_.capacity() == 0 && std::find(run.folds.begin(), run.folds.end(), 1) != run.folds.end();
  if (!folds_early_) return;
  fold_begun_.resize(run.graph.op_count());
  folded_.resize(run.routes.edge_count());
}

void Worker::prepare() {
  const auto ops = run_.routes.ops_on(device_);
  const Rules& rules = run_.problem.rules();
  queue_.prepare(rules.discipline, ops, run_.rank, Rng(rules.seed).split(device_));
  left_ = static_cast<std::uint32_t>(ops.size());
  received_ = 0;
  releases_helped_ = 0;
  deferred_.clear();
  foldable_.clear();
  std::fill(fold_begun_.begin(), fold_begun_.end(), 0);
  std::fill(folded_.begin(), folded_.end(), 0);
  folding_ = 0;
  executed_.store(0, std::memory_order_relaxed);
  copied_.store(0, std::memory_order_relaxed);
  current_.store(kNoOp, std::memory_order_relaxed);
}

void Worker::work() {
  now_ = run_.now();
  run_.problem.rules().bulk_synchronous ? run_supersteps() : run_asynchronously();
}

void Worker::run_asynchronously() {
  for (const OpId op : run_.routes.ops_on(device_))
    if (run_.pending[op].load(std::memory_order_relaxed) == 0) queue_.push(op);
  const auto has_work = [this] { return has_mail() || (!deferred_.empty() && arena_.releases() != releases_seen_); };
  while (left_ > 0 && !run_.stopped()) {
    while (run_.receiver_copies() && !run_.stopped() && help_courier()) {
    }
    receive();
    if (!run_one() && !fold_one()) rest(has_work);
  }
}

// In a superstep every device runs its ops of one level; when all have ended, their results move; when all have
// arrived, the next superstep begins.
void Worker::run_supersteps() {
  std::uint32_t expected = 0;  // transfers up to this level
  for (std::uint32_t level = 0; level < run_.levels && !run_.stopped(); ++level) {
    const std::vector<OpId>& ops = run_.ops_of_level[device_][level];
    run_level(ops);
    cross_barrier(2 * level + 1);
    for (const OpId op : ops)
      if (!run_.stopped()) send(op);
    expected += run_.arrivals_of_level[device_][level];
    while (received_ < expected && !run_.stopped()) {
      receive();
      if (received_ < expected) rest([this] { return has_mail(); });
    }
    cross_barrier(2 * level + 2);
  }
}

void Worker::run_level(std::span<const OpId> ops) {
  for (const OpId op : ops) {
    run_.op_records[op].ready = now_;
    while (!run_.stopped()) {
      releases_seen_ = arena_.releases();
      if (allocate_outputs(op)) break;
      deferred_.assign(1, op);
      rest([this] { return arena_.releases() != releases_seen_; });
    }
    if (run_.stopped()) return;
    deferred_.clear();
    if (execute(op)) deliver_local(op);
  }
}

// Waits until every worker has reached barriers 1 … number.
void Worker::cross_barrier(std::uint32_t number) {
  const std::uint32_t all = number * run_.devices;
  const auto open = [&] { return run_.superstep.load(std::memory_order_seq_cst) >= all; };
  if (run_.superstep.fetch_add(1, std::memory_order_seq_cst) + 1 == all) {
    for (DeviceId other = 0; other < run_.devices; ++other) run_.parking.wake(other);
  }
  while (!open() && !run_.stopped()) rest(open);
  now_ = run_.now();
}

bool Worker::has_mail() const {
  if (run_.arrival_logs[device_].has_mail()) return true;
  for (DeviceId src = 0; src < run_.devices; ++src)
    if (run_.direct(src, device_).has_mail()) return true;
  return false;
}

void Worker::receive() {
  const auto drain = [this](MessageLog& log) {
    bool looked = false;  // the clock is read once per log, because another log's mail may have been sent since
    log.receive([&](std::uint32_t id) {
      if (!looked) now_ = run_.now();
      looked = true;
      ++received_;
      for (const Routes::Consumer consumer : run_.routes.consumers(run_.routes.transfer(id))) arrive(consumer);
    });
  };
  for (DeviceId src = 0; src < run_.devices; ++src)
    if (src != device_) drain(run_.direct(src, device_));
  drain(run_.arrival_logs[device_]);
}

void Worker::arrive(Routes::Consumer consumer) {
  std::atomic<std::uint32_t>& pending = run_.pending[consumer.op];
  const std::uint32_t left = pending.load(std::memory_order_relaxed) - 1;
  pending.store(left, std::memory_order_relaxed);
  if (left > 0) {
    if (folds_early_ && run_.folds[consumer.op]) foldable_.push_back(consumer);
  } else if (!run_.problem.rules().bulk_synchronous) {
    run_.op_records[consumer.op].ready = now_;
    queue_.push(consumer.op);
  }
}

bool Worker::can_help() const {
  return courier_ != nullptr &&
         (courier_->has_mail() || (courier_->blocked() && arena_.releases() != releases_helped_));
}

// Returns false if there was nothing to do.
bool Worker::help_courier() {
  if (!can_help()) return false;
  releases_helped_ = arena_.releases();
  if (!courier_->help()) return false;
  copied_.store(copied_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

// Runs the first ready op that fits in memory, or returns false if there is none.
bool Worker::run_one() {
  if (!deferred_.empty()) {
    if (const std::uint64_t releases = arena_.releases(); releases != releases_seen_) {
      releases_seen_ = releases;
      for (auto op = deferred_.rbegin(); op != deferred_.rend(); ++op) queue_.put_back(*op);  // in their old order
      deferred_.clear();
    }
  } else {
    releases_seen_ = arena_.releases();
  }
  const bool strict = run_.problem.rules().discipline == Discipline::ordered;  // nothing may overtake
  while (!(strict && !deferred_.empty())) {
    const auto op = queue_.pop();
    if (!op) return false;
    if (allocate_outputs(*op)) {
      if (!execute(*op)) return true;
      deliver_local(*op);
      send(*op);
      return true;
    }
    deferred_.push_back(*op);
  }
  return false;
}

bool Worker::fold_one() {
  while (!foldable_.empty()) {
    const Routes::Consumer next = foldable_.back();
    foldable_.pop_back();
    if (run_.pending[next.op].load(std::memory_order_relaxed) == 0) continue;  // it runs as a whole
    if (!fold_begun_[next.op] && !allocate_outputs(next.op)) continue;
    const Ticks begin = run_.now();
    current_.store(next.op, std::memory_order_relaxed);
    fold(next.op, next.input);
    current_.store(kNoOp, std::memory_order_relaxed);
    now_ = run_.now();
    folding_ += now_ - begin;
    return true;
  }
  return false;
}

// Waits until there is something to do. Meanwhile the worker is its own courier.
template <typename HasWork>
void Worker::rest(HasWork has_work) {
  run_.resting[device_].store(true, std::memory_order_seq_cst);
  const auto something = [&] { return run_.stopped() || has_work() || can_help(); };
  while (!run_.stopped() && !has_work()) {
    if (can_help()) {
      help_courier();
      continue;
    }
    bool found = false;
    for (int spin = 0; spin < spins_ && !found; ++spin) {
      pause();
      found = something();
    }
    if (!found && !run_.parking.park(device_, something)) run_.deadlock();
  }
  run_.resting[device_].store(false, std::memory_order_seq_cst);
  // The courier has to do what was left to this worker and comes too late for it.
  if (courier_ != nullptr && run_.couriers_have_threads() && courier_->has_mail())
    run_.parking.wake(run_.courier_thread(run_.courier_of(device_)));
  now_ = run_.now();
}

// Takes buffers for all outputs of the op, unless a fold has taken them before; returns false and takes none if they do
// not fit now.
bool Worker::allocate_outputs(OpId op) {
  if (!run_.routes.touches_memory(op) || (!fold_begun_.empty() && fold_begun_[op])) return true;
  Bytes total = 0;
  for (const TensorId tensor : run_.graph.outputs(op)) total += run_.routes.bytes(tensor);
  if (!arena_.reserve(total)) return false;
  for (const TensorId tensor : run_.graph.outputs(op)) {
    SharedRun::Buffer& buffer = run_.buffers[tensor];
    buffer.data = arena_.take(run_.routes.bytes(tensor));
    buffer.users.store(run_.routes.users(tensor), std::memory_order_relaxed);
  }
  return true;
}

// Returns false if the run was stopped meanwhile: then the kernel may have been given up, and the results count for
// nothing.
bool Worker::execute(OpId op) {
  SharedRun::OpRecord& record = run_.op_records[op];
  record.start = now_;
  current_.store(op, std::memory_order_relaxed);
  run_kernel(op);
  current_.store(kNoOp, std::memory_order_relaxed);
  if (run_.stopped()) return false;
  now_ = run_.now();
  record.end = now_;
  if (run_.routes.touches_memory(op)) release_inputs(op);
  --left_;
  executed_.store(executed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

void Worker::run_kernel(OpId op) {
  const auto buffers = run_.routes.input_buffers(op);
  if (!fold_begun_.empty() && fold_begun_[op]) {
    for (std::uint32_t input = 0; input < buffers.size(); ++input)
      if (!folded_[run_.routes.input_begin(op) + input] && !run_.stopped()) fold(op, input);
    return;
  }
  for (std::size_t i = 0; i < buffers.size(); ++i)
    inputs_[i] = buffers[i] == Routes::kNoBuffer ? nullptr : run_.buffers[buffers[i]].data;
  std::size_t count = 0;
  for (const TensorId tensor : run_.graph.outputs(op)) outputs_[count++] = run_.buffers[tensor].data;
  run_.kernels.run(op, device_, {{inputs_.data(), buffers.size()}, {outputs_.data(), count}});
}

// Adds one input to the outputs and gives it back.
void Worker::fold(OpId op, std::uint32_t input) {
  const auto buffers = run_.routes.input_buffers(op);
  if (buffers[input] != Routes::kNoBuffer) inputs_[input] = run_.buffers[buffers[input]].data;
  std::size_t count = 0;
  for (const TensorId tensor : run_.graph.outputs(op)) outputs_[count++] = run_.buffers[tensor].data;
  run_.kernels.fold(op, device_, input, !fold_begun_[op], {{inputs_.data(), buffers.size()}, {outputs_.data(), count}});
  if (run_.stopped()) return;  // the result counts for nothing, as in execute()
  fold_begun_[op] = 1;
  folded_[run_.routes.input_begin(op) + input] = 1;
  if (buffers[input] != Routes::kNoBuffer) run_.release(buffers[input], device_, run_.graph.inputs(op)[input]);
}

void Worker::release_inputs(OpId op) {
  const auto tensors = run_.graph.inputs(op);
  const auto buffers = run_.routes.input_buffers(op);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] == Routes::kNoBuffer) continue;
    if (!folded_.empty() && folded_[run_.routes.input_begin(op) + i]) continue;
    run_.release(buffers[i], device_, tensors[i]);
  }
}

void Worker::deliver_local(OpId op) {
  for (const TensorId tensor : run_.graph.outputs(op))
    for (const Routes::Consumer consumer : run_.routes.local(tensor)) arrive(consumer);
}

void Worker::send(OpId op) {
  for (const TensorId tensor : run_.graph.outputs(op)) {
    for (std::uint32_t id = run_.routes.first_transfer(tensor); id < run_.routes.last_transfer(tensor); ++id) {
      const DeviceId dst = run_.routes.transfer(id).dst;
      if (copy_directly(id)) {
        run_.direct(device_, dst).send(id);
        run_.parking.wake(dst);
      } else {
        run_.transfer_records[id].queued = now_;
        const unsigned courier = run_.courier_of(dst);
        run_.requests(device_, courier).send(id);
        // A device that rests serves itself; should it stop resting at this moment, it calls the courier.
        const bool self_service =
            run_.receiver_copies() || (!run_.one_courier && run_.resting[dst].load(std::memory_order_seq_cst));
        run_.parking.wake(self_service ? dst : run_.courier_thread(courier));
      }
    }
  }
}

// Returns false if it is a courier's business.
bool Worker::copy_directly(std::uint32_t id) {
  const Routes::Transfer& transfer = run_.routes.transfer(id);
  if (!transfer.direct) return false;
  SharedRun::TransferRecord& record = run_.transfer_records[id];
  record.queued = record.start = record.end = now_;
  if (!run_.copies(id)) return true;
  if (!run_.reserve_copy(id)) return false;
  run_.copy(id);
  record.end = run_.now();
  return true;
}

}  // namespace doppler
