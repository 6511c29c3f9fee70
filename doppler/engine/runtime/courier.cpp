#include "doppler/engine/runtime/courier.h"

#include <algorithm>

namespace doppler {

void Courier::prepare() {
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

std::optional<std::uint32_t> Courier::begin_one() {
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](auto id) { return run_.reserve_copy(id); });
  if (next == waiting_.end()) return std::nullopt;
  const std::uint32_t id = *next;
  waiting_.erase(next);
  run_.transfer_records[id].start = run_.now();
  return id;
}

void Courier::arrive(std::uint32_t id) {
  const DeviceId dst = run_.routes.transfer(id).dst;
  run_.copy(id);
  run_.transfer_records[id].end = run_.now();
  run_.arrival_logs[dst].send(id);
  run_.parking.wake(dst);
}

std::uint64_t Courier::releases() const {
  std::uint64_t sum = 0;
  for (DeviceId dst = 0; dst < run_.devices; ++dst)
    if (run_.courier_of(dst) == courier_) sum += run_.arenas[dst].releases();
  return sum;
}

bool CopyCourier::serve() {
  const std::optional<std::uint32_t> next = begin_one();
  if (!next || run_.stopped()) return false;
  arrive(*next);
  return true;
}

}  // namespace doppler
