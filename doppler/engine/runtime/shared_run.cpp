#include "doppler/engine/runtime/shared_run.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/graph/levels.h"

namespace doppler {
namespace {

// Of tensors that the kernels keep in memory of their own, the engine holds nothing.
std::vector<Bytes> sizes_of(const Graph& graph, const Kernels& kernels) {
  std::vector<Bytes> sizes(graph.tensor_count(), 0);
  if (!kernels.hold_tensors())
    for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) sizes[tensor] = graph.bytes(tensor);
  return sizes;
}

}  // namespace

SharedRun::SharedRun(const Problem& given, std::shared_ptr<DeviceKind> given_kind, const RuntimeOptions& given_options)
    : problem(given),
      graph(problem.graph()),
      kind(std::move(given_kind)),
      kernels(kind->kernels()),
      memory(kernels.memory()),
      options(given_options),
      devices(problem.device_count()),
      one_courier(kind->one_courier()),
      routes(graph, devices, sizes_of(graph, kernels), one_memory()),
      pending(new std::atomic<std::uint32_t>[problem.op_count()]),
      op_records(problem.op_count()),
      direct_logs(devices * devices),
      request_logs(devices * courier_count()),
      arrival_logs(devices),
      parking(thread_count()),
      resting(new std::atomic<bool>[devices]) {
  for (DeviceId device = 0; device < devices; ++device)
    arenas.emplace_back(device, problem.machine().device(device).memory, memory);
  rank.resize(graph.op_count());
  folds.resize(graph.op_count());
  for (OpId op = 0; op < graph.op_count(); ++op) folds[op] = !options.deterministic && kernels.folds(op);
  if (!problem.rules().bulk_synchronous) return;
  depth = depths(graph);
  levels = *std::max_element(depth.begin(), depth.end()) + 1;
}

void SharedRun::prepare(const Placement& wanted) {
  if (!laid_out_ || wanted != placement_) lay_out(wanted);
  for (OpId op = 0; op < graph.op_count(); ++op)
    pending[op].store(static_cast<std::uint32_t>(routes.input_buffers(op).size()), std::memory_order_relaxed);
  if (const std::size_t needed = graph.tensor_count() + routes.transfer_count(); needed > buffer_count) {
    buffers.reset(new Buffer[needed]);
    buffer_count = needed;
  }
  transfer_records.assign(routes.transfer_count(), {});
  prepare_logs();
  parking.clear();
  for (DeviceId device = 0; device < devices; ++device) resting[device].store(false);
  stop.store(false);
  deadlocked.store(false);
  unfinished.store(devices);
  superstep.store(0);
  error = nullptr;
  reserve_parameters();
}

void SharedRun::lay_out(const Placement& wanted) {
  verify(problem, wanted);
  laid_out_ = false;
  placement_ = wanted;
  routes.assign(placement_.device_of_op);
  routes.hand_over([this](const Routes::Transfer& transfer) { return kind->hands_over(transfer); });
  if (problem.rules().read_priorities()) {
    rank = placement_.priority.empty() ? default_priority(problem.costs()) : placement_.priority;
    if (problem.rules().discipline == Discipline::ordered) rank = line_up(graph, rank);
  }
  if (problem.rules().bulk_synchronous) lay_out_levels();
  laid_out_ = true;
}

void SharedRun::lay_out_levels() {
  ops_of_level.assign(devices, std::vector<std::vector<OpId>>(levels));
  for (OpId op = 0; op < graph.op_count(); ++op) ops_of_level[routes.device(op)][depth[op]].push_back(op);
  arrivals_of_level.assign(devices, std::vector<std::uint32_t>(levels, 0));
  for (const Routes::Transfer& transfer : routes.transfers())
    ++arrivals_of_level[transfer.dst][depth[graph.producer(transfer.tensor)]];
}

void SharedRun::prepare_logs() {
  for (DeviceId dst = 0; dst < devices; ++dst) {
    std::uint32_t arrivals = 0;
    for (DeviceId src = 0; src < devices; ++src) {
      direct(src, dst).prepare(routes.traffic(src, dst));
      arrivals += routes.traffic(src, dst);
    }
    arrival_logs[dst].prepare(arrivals);
  }
  for (DeviceId src = 0; src < devices; ++src) {
    std::vector<std::size_t> most(courier_count(), 0);
    for (DeviceId dst = 0; dst < devices; ++dst) most[courier_of(dst)] += routes.traffic(src, dst);
    for (unsigned courier = 0; courier < courier_count(); ++courier) requests(src, courier).prepare(most[courier]);
  }
}

void SharedRun::reserve_parameters() {
  for (DeviceId device = 0; device < devices; ++device) {
    Bytes parameters = 0;
    for (const OpId op : routes.ops_on(device)) parameters += graph.parameter_bytes(op);
    if (!arenas[device].start(parameters))
      throw InfeasibleError(fmt::format("device '{}': its ops have {} of parameters; required at most {}",
                                        problem.machine().device(device).name, format_bytes(parameters),
                                        format_bytes(arenas[device].capacity())));
  }
}

void SharedRun::release(std::uint32_t buffer, DeviceId device, TensorId tensor) {
  if (buffers[buffer].users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const DeviceId owner = routes.owner(tensor, device);
  if (!arenas[owner].release(buffers[buffer].data, routes.bytes(tensor))) return;  // nobody waits for memory
  parking.wake(owner);
  if (couriers_have_threads()) parking.wake(courier_thread(courier_of(owner)));
}

bool SharedRun::reserve_copy(std::uint32_t id) {
  if (!copies(id)) return true;
  const Routes::Transfer& transfer = routes.transfer(id);
  const Bytes bytes = routes.bytes(transfer.tensor);
  Arena& arena = arenas[transfer.dst];
  if (!arena.reserve(bytes)) return false;
  Buffer& copy = buffers[graph.tensor_count() + id];
  copy.data = arena.take(bytes);
  copy.users.store(transfer.last - transfer.first, std::memory_order_relaxed);
  return true;
}

void SharedRun::copy(std::uint32_t id) {
  if (!copies(id)) return;
  const Routes::Transfer& transfer = routes.transfer(id);
  memory.copy(buffers[transfer.tensor].data, transfer.src, buffers[graph.tensor_count() + id].data, transfer.dst,
              routes.bytes(transfer.tensor));
  release(transfer.tensor, transfer.src, transfer.tensor);
}

void SharedRun::fail(std::exception_ptr first) {
  {
    const std::lock_guard lock(error_mutex);
    if (!error) error = std::move(first);
  }
  stop_all();
}

void SharedRun::deadlock() {
  deadlocked.store(true);
  stop_all();
}

void SharedRun::stop_all() {
  stop.store(true, std::memory_order_seq_cst);
  kernels.cancel();
  parking.wake_all();
}

}  // namespace doppler
