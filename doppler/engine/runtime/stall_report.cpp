#include "doppler/engine/runtime/stall_report.h"

#include <limits>

#include "doppler/base/error.h"

namespace doppler {
namespace {

std::string device_name(const SharedRun& run, DeviceId device) { return run.problem.machine().device(device).name; }

// Says what an idle device waits for: the inputs of the op that lacks the fewest.
std::string missing_for(const SharedRun& run, DeviceId device) {
  OpId next = Worker::kNoOp;
  std::uint32_t fewest = std::numeric_limits<std::uint32_t>::max();
  for (const OpId op : run.routes.ops_on(device)) {
    const std::uint32_t pending = run.pending[op].load(std::memory_order_relaxed);
    if (pending > 0 && pending < fewest) fewest = pending, next = op;
  }
  if (next == Worker::kNoOp) return "has nothing left to wait for";
  return fmt::format("waits for {} of {} inputs of '{}'", fewest, run.graph.inputs(next).size(), run.graph.name(next));
}

}  // namespace

std::string describe_stall(const SharedRun& run, const std::deque<Worker>& workers) {
  std::string report = fmt::format("run: no op has ended for {}", format_seconds(run.options.stall_after));
  for (DeviceId device = 0; device < run.devices; ++device) {
    const OpId op = workers[device].current();
    report += fmt::format(
        "; device '{}', {} of {} ops done, {}", device_name(run, device), workers[device].executed(),
        run.routes.ops_on(device).size(),
        op == Worker::kNoOp ? missing_for(run, device) : fmt::format("is running '{}'", run.graph.name(op)));
  }
  return report;
}

std::string describe_deadlock(const SharedRun& run, const std::deque<Worker>& workers,
                              const std::vector<std::unique_ptr<Courier>>& couriers) {
  const auto describe = [&](OpId op, DeviceId device, Bytes bytes, const char* what) {
    return fmt::format(
        "device '{}': {} '{}' needs {}, {} of {} are in use and nothing will free any; required a "
        "placement that fits in memory",
        device_name(run, device), what, run.graph.name(op), format_bytes(bytes),
        format_bytes(run.arenas[device].used()), format_bytes(run.arenas[device].capacity()));
  };
  for (DeviceId device = 0; device < run.devices; ++device) {
    const OpId op = workers[device].waits_for_memory();
    if (op == Worker::kNoOp) continue;
    Bytes bytes = 0;
    for (const TensorId tensor : run.graph.outputs(op)) bytes += run.routes.bytes(tensor);
    return describe(op, device, bytes, "op");
  }
  for (const auto& courier : couriers) {
    if (courier->waiting().empty()) continue;
    const Routes::Transfer& transfer = run.routes.transfer(courier->waiting().front());
    return describe(run.graph.producer(transfer.tensor), transfer.dst, run.routes.bytes(transfer.tensor),
                    "a copy of the result of");
  }
  throw InternalError("run: everybody sleeps, work is left and memory suffices; required: never");
}

}  // namespace doppler
