#include "doppler/report/check_schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

class ScheduleCheck {
 public:
  ScheduleCheck(const std::string& where, const Schedule& schedule) : where_(where), schedule_(schedule) {}

  void run() const {
    constexpr std::uint32_t kMostSlots = 4096;
    if (!(schedule_.tick > 0) || !std::isfinite(schedule_.tick) || !std::isfinite(schedule_.makespan))
      refuse("tick and makespan", "finite numbers, the tick above 0");
    for (const Schedule::DeviceLane& device : schedule_.devices) {
      if (device.slots == 0 || device.slots > kMostSlots) refuse("slots of a device", "1 to 4096");
      same_length("memory", device.memory_times.size(), device.memory_bytes.size());
    }
    check_ops();
    check_transfers();
    check_rest();
  }

 private:
  [[noreturn]] void refuse(const char* what, const char* required) const {
    throw InputError(fmt::format("{}: its schedule has other {}; required {}", where_, what, required));
  }
  void same_length(const char* what, std::size_t found, std::size_t wanted) const {
    if (found != wanted) refuse(what, "columns of one length");
  }
  void below(const char* what, const Schedule::Column& column, std::size_t limit) const {
    if (std::any_of(column.begin(), column.end(), [&](std::uint32_t value) { return value >= limit; }))
      refuse(what, "numbers of things that are there");
  }

  void check_ops() const {
    const Schedule::Ops& ops = schedule_.ops;
    const std::size_t count = ops.name.size();
    for (const auto* column : {&ops.kind, &ops.device, &ops.slot, &ops.start, &ops.takes, &ops.waited})
      same_length("columns of ops", column->size(), count);
    if (!ops.cause.empty()) same_length("causes of ops", ops.cause.size(), count);
    below("kinds of ops", ops.kind, schedule_.kinds.size());
    below("devices of ops", ops.device, schedule_.devices.size());
    below("causes of ops", ops.cause, schedule_.causes.size());
    for (std::size_t op = 0; op < count; ++op)
      if (ops.slot[op] >= schedule_.devices[ops.device[op]].slots) refuse("slots of ops", "those of their devices");
    same_length("inputs of ops", ops.input_begin.size(), count + 1);
    if (!std::is_sorted(ops.input_begin.begin(), ops.input_begin.end()) || ops.input_begin.back() != ops.input.size())
      refuse("inputs of ops", "ascending begins");
    below("inputs of ops", ops.input, count);
  }

  void check_transfers() const {
    const Schedule::Transfers& transfers = schedule_.transfers;
    const std::size_t count = transfers.producer.size();
    for (const auto* column : {&transfers.src, &transfers.dst, &transfers.later, &transfers.takes, &transfers.waited})
      same_length("columns of transfers", column->size(), count);
    same_length("columns of transfers", transfers.bytes.size(), count);
    below("producers of transfers", transfers.producer, schedule_.ops.name.size());
    below("sources of transfers", transfers.src, schedule_.devices.size());
    below("destinations of transfers", transfers.dst, schedule_.devices.size());
  }

  void check_rest() const {
    const Schedule::Gaps& gaps = schedule_.gaps;
    for (const auto* column : {&gaps.slot, &gaps.start, &gaps.end, &gaps.waits})
      same_length("columns of gaps", column->size(), gaps.device.size());
    below("devices of gaps", gaps.device, schedule_.devices.size());
    below("causes of gaps", gaps.waits, schedule_.waits.size());
    const Schedule::Chain& chain = schedule_.chain;
    same_length("columns of the chain", chain.transfer.size(), chain.id.size());
    same_length("columns of the chain", chain.waits.size(), chain.id.size());
    for (std::size_t i = 0; i < chain.id.size(); ++i)
      if (chain.id[i] >= (chain.transfer[i] != 0 ? schedule_.transfers.producer.size() : schedule_.ops.name.size()))
        refuse("steps of the chain", "numbers of things that are there");
    below("causes of the chain", chain.waits, schedule_.waits.size());
    below("ops elsewhere", schedule_.elsewhere.op, schedule_.ops.name.size());
    if (!schedule_.elsewhere.op.empty())
      same_length("devices elsewhere", schedule_.elsewhere.makespan.size(), schedule_.devices.size());
    for (const Schedule::Ticks& makespans : schedule_.elsewhere.makespan)
      same_length("makespans elsewhere", makespans.size(), schedule_.elsewhere.op.size());
    for (const Schedule::Ticks& times : schedule_.time_on)
      same_length("times by type", times.size(), schedule_.ops.name.size());
  }

  const std::string& where_;
  const Schedule& schedule_;
};

}  // namespace

void check_schedules(const std::string& where, const AnyResult& result) {
  const auto check = [&](const std::optional<Schedule>& schedule) {
    if (schedule) ScheduleCheck(where, *schedule).run();
  };
  if (const auto* simulation = std::get_if<SimulationResult>(&result)) check(simulation->schedule);
  if (const auto* placed = std::get_if<PlaceResult>(&result)) check(placed->run.schedule);
  if (const auto* run = std::get_if<RunResult>(&result)) check(run->schedule), check(run->simulated);
}

}  // namespace doppler
