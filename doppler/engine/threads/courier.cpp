#include "doppler/engine/threads/courier.h"

#include <algorithm>

#include "doppler/engine/emulated/emulated_kernels.h"

namespace doppler {

void Courier::prepare() {
  ++runs_;
  waiting_.clear();
  more_.store(false);
  blocked_.store(false);
}

bool Courier::help() {
  const std::lock_guard lock(mutex_);
  receive();
  const bool served = serve();
  more_.store(served && !waiting_.empty(), std::memory_order_seq_cst);
  blocked_.store(!served && !waiting_.empty(), std::memory_order_seq_cst);
  return served;
}

void Courier::work() {
  while (!run_.stopped()) {
    const std::uint64_t releases_before = releases();
    if (help()) continue;
    const auto has_work = [&] { return run_.stopped() || has_mail() || (blocked() && releases() != releases_before); };
    const unsigned thread = run_.courier_thread(courier_);
    if (const Ticks due = next_due(); due != kNever) {
      if (const Ticks left = due - run_.now(); left > 0) run_.parking.nap(thread, left, has_work);
    } else if (!run_.parking.park(thread, has_work)) {
      if (run_.unfinished.load() > 0) run_.deadlock();
      return;
    }
  }
}

void Courier::receive() {
  for (DeviceId src = 0; src < run_.devices; ++src)
    run_.requests(src, courier_).receive([this](std::uint32_t id) { waiting_.push_back(id); });
}

bool Courier::has_mail() const {
  if (more_.load(std::memory_order_seq_cst)) return true;
  for (DeviceId src = 0; src < run_.devices; ++src)
    if (run_.requests(src, courier_).has_mail()) return true;
  return false;
}

void Courier::arrive(std::uint32_t id) {
  const DeviceId dst = run_.routes.transfer(id).dst;
  run_.copy(id);
  run_.transfer_records[id].end = run_.now();
  run_.arrival_logs[dst].send(id);
  run_.parking.wake(dst);
}

Ticks Courier::modelled_time(std::uint32_t id) const {
  const Routes::Transfer& transfer = run_.routes.transfer(id);
  const Seconds modelled = run_.problem.costs().transfer_time(transfer.tensor, transfer.src, transfer.dst);
  const double jitter = draw_of_run(run_.problem, runs_).factor(run_.graph.op_count() + std::uint64_t{id});
  return static_cast<Ticks>(modelled * run_.options.time_scale * jitter * 1e9);
}

std::uint64_t Courier::releases() const {
  std::uint64_t sum = 0;
  for (DeviceId dst = 0; dst < run_.devices; ++dst)
    if (run_.courier_of(dst) == courier_) sum += run_.arenas[dst].releases();
  return sum;
}

bool CopyCourier::serve() {
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](auto id) { return run_.reserve_copy(id); });
  if (next == waiting_.end()) return false;
  const std::uint32_t id = *next;
  waiting_.erase(next);
  const Ticks start = run_.transfer_records[id].start = run_.now();
  if (run_.emulated())
    let_pass(run_.begin + std::chrono::nanoseconds(start), std::chrono::nanoseconds(modelled_time(id)), run_.stop);
  if (run_.stopped()) return false;
  arrive(id);
  return true;
}

EmulatedCourier::EmulatedCourier(SharedRun& run, unsigned courier) : Courier(run, courier) {
  if (run.problem.rules().links != Links::channels) return;
  for (DeviceId src = 0; src < run.devices; ++src)
    for (DeviceId dst = 0; dst < run.devices; ++dst)
      channel_free_.emplace_back(src == dst ? 0 : run.problem.machine().link(src, dst).channels);
}

void EmulatedCourier::prepare() {
  Courier::prepare();
  due_.clear();
  for (std::vector<Ticks>& channels : channel_free_) std::fill(channels.begin(), channels.end(), 0);
}

bool EmulatedCourier::serve() {
  const std::size_t before = waiting_.size();
  std::erase_if(waiting_, [this](std::uint32_t id) {
    SharedRun::TransferRecord& record = run_.transfer_records[id];
    const bool fits = run_.reserve_copy(id);
    if (fits) begin(id);
    record.waited_for_memory = !fits;
    return fits;
  });
  bool served = waiting_.size() < before;
  for (const Ticks now = run_.now(); !due_.empty() && due_.front().time <= now; served = true) {
    const std::uint32_t id = due_.front().id;
    std::pop_heap(due_.begin(), due_.end());
    due_.pop_back();
    arrive(id);
  }
  return served;
}

// A transfer takes the channel that is free first, as in the simulator.
void EmulatedCourier::begin(std::uint32_t id) {
  SharedRun::TransferRecord& record = run_.transfer_records[id];
  const Routes::Transfer& transfer = run_.routes.transfer(id);
  const Ticks time = modelled_time(id);
  // A link would not have waited until this thread noticed.
  record.start = record.waited_for_memory ? run_.now() : record.queued;
  if (!channel_free_.empty()) {
    std::vector<Ticks>& channels = channel_free_[transfer.src * run_.devices + transfer.dst];
    const auto channel = std::min_element(channels.begin(), channels.end());
    record.start = std::max(record.start, *channel);
    record.channel = static_cast<std::uint32_t>(channel - channels.begin());
    *channel = record.start + time;
  }
  due_.push_back({record.start + time, id});
  std::push_heap(due_.begin(), due_.end());
}

}  // namespace doppler
