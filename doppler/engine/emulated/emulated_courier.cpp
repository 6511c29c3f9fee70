#include "doppler/engine/emulated/emulated_courier.h"

#include <algorithm>

namespace doppler {

bool ReceiverCourier::serve() {
  const std::optional<std::uint32_t> next = begin_one();
  if (!next) return false;
  const auto begin = run_.begin + std::chrono::nanoseconds(run_.transfer_records[*next].start);
  devices_.let_pass(begin, devices_.transfer_time(run_.routes.transfer(*next), *next));
  if (run_.stopped()) return false;
  arrive(*next);
  return true;
}

LinkCourier::LinkCourier(SharedRun& run, unsigned courier, const EmulatedDevices& devices)
    : Courier(run, courier), devices_(devices) {
  if (run.problem.rules().links != Links::channels) return;
  for (DeviceId src = 0; src < run.devices; ++src)
    for (DeviceId dst = 0; dst < run.devices; ++dst)
      channel_free_.emplace_back(src == dst ? 0 : run.problem.machine().link(src, dst).channels);
}

void LinkCourier::prepare() {
  Courier::prepare();
  due_.clear();
  for (std::vector<Ticks>& channels : channel_free_) std::fill(channels.begin(), channels.end(), 0);
}

bool LinkCourier::serve() {
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
void LinkCourier::begin(std::uint32_t id) {
  SharedRun::TransferRecord& record = run_.transfer_records[id];
  const Routes::Transfer& transfer = run_.routes.transfer(id);
  const Ticks time = devices_.transfer_time(transfer, id).count();
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
