#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "doppler/engine/runtime/arena.h"
#include "doppler/engine/runtime/device_kind.h"
#include "doppler/engine/runtime/message_log.h"
#include "doppler/engine/runtime/parking.h"
#include "doppler/engine/runtime/routes.h"
#include "doppler/engine/runtime/runtime.h"

namespace doppler {

using Ticks = std::int64_t;  // nanoseconds since the run began

// What the threads of one run share. Every array element has one writer, except the users of a buffer. Internal to
// doppler/engine.
struct SharedRun {
  SharedRun(const Problem& problem, std::shared_ptr<DeviceKind> kind, const RuntimeOptions& options);

  // Lays out a placement and resets everything. Throws InfeasibleError if the parameters do not fit.
  void prepare(const Placement& placement);

  Ticks now() const { return (std::chrono::steady_clock::now() - begin).count(); }

  // Whether devices hand over tensors, which stay where they were made.
  bool one_memory() const { return problem.rules().links == Links::shared; }
  // Whether workers are their own couriers, which then have no threads.
  bool receiver_copies() const { return problem.rules().links == Links::receiver; }

  // Whether couriers have threads of their own. They have none where workers copy, or hand over, themselves.
  bool couriers_have_threads() const { return !receiver_copies() && (one_courier || !one_memory()); }

  // Threads are numbered: workers 0 … devices-1, then the couriers.
  unsigned courier_count() const { return one_courier ? 1 : devices; }
  unsigned courier_of(DeviceId dst) const { return one_courier ? 0 : dst; }
  unsigned courier_thread(unsigned courier) const { return devices + courier; }
  unsigned thread_count() const { return devices + (couriers_have_threads() ? courier_count() : 0); }

  MessageLog& direct(DeviceId src, DeviceId dst) { return direct_logs[src * devices + dst]; }
  MessageLog& requests(DeviceId src, unsigned courier) { return request_logs[src * courier_count() + courier]; }

  // Counts one user of a buffer less, which is on `device`; the last one gives the memory back.
  void release(std::uint32_t buffer, DeviceId device, TensorId tensor);
  // Whether the transfer moves bytes, and is more than the news of a tensor.
  bool copies(std::uint32_t id) const { return !one_memory() && routes.bytes(routes.transfer(id).tensor) > 0; }
  // Takes space for the copy that transfer `id` makes, or returns false if it does not fit now.
  bool reserve_copy(std::uint32_t id);
  // Fills that copy and lets go of the original.
  void copy(std::uint32_t id);
  // Keeps the first exception and stops the run.
  void fail(std::exception_ptr error);
  bool stopped() const { return stop.load(std::memory_order_seq_cst); }
  void stop_all();
  // Ends the run because everybody sleeps and work is left.
  void deadlock();

  const Problem problem;
  const Graph& graph;
  const std::shared_ptr<DeviceKind> kind;
  Kernels& kernels;
  const DeviceMemory& memory;
  const RuntimeOptions options;
  const DeviceId devices;
  const bool one_courier;  // as DeviceKind::one_courier() says
  Routes routes;
  std::vector<std::uint32_t> rank;   // as Placement::priority, where the rules read it
  std::vector<char> folds;           // by op: it takes inputs as they arrive
  std::vector<std::uint32_t> depth;  // by op, if bulk-synchronous
  std::uint32_t levels = 0;
  std::vector<std::vector<std::vector<OpId>>> ops_of_level;   // by device and level, if bulk-synchronous
  std::vector<std::vector<std::uint32_t>> arrivals_of_level;  // transfers from producers of the level, likewise
  std::deque<Arena> arenas;                                   // by device

  struct Buffer {
    std::byte* data = nullptr;
    std::atomic<std::uint32_t> users{0};
  };
  std::unique_ptr<Buffer[]> buffers;  // as numbered by Routes
  std::size_t buffer_count = 0;

  // By op, the number of inputs that have not arrived. Only the op's device writes it; the watchdog reads.
  std::unique_ptr<std::atomic<std::uint32_t>[]> pending;
  struct OpRecord {
    Ticks ready = 0, start = 0, end = 0;
  };
  std::vector<OpRecord> op_records;
  struct TransferRecord {
    Ticks queued = 0, start = 0, end = 0;
    std::uint32_t channel = 0;
    bool waited_for_memory = false;
  };
  std::vector<TransferRecord> transfer_records;

  std::deque<MessageLog> direct_logs;   // from worker to worker: the tensor is there
  std::deque<MessageLog> request_logs;  // from worker to courier: the tensor is to be taken there
  std::deque<MessageLog> arrival_logs;  // from courier to worker: the tensor is there

  Parking parking;
  std::unique_ptr<std::atomic<bool>[]> resting;  // by device: its worker has nothing to do
  std::chrono::steady_clock::time_point begin;
  std::atomic<bool> stop{false}, deadlocked{false};
  std::atomic<std::uint32_t> unfinished{0};  // workers that have ops left
  std::atomic<std::uint32_t> superstep{0};   // how often a worker has reached a barrier, if bulk-synchronous

  std::mutex error_mutex;
  std::exception_ptr error;

 private:
  void lay_out(const Placement& wanted);
  void lay_out_levels();
  void prepare_logs();
  void reserve_parameters();

  Placement placement_;  // the one that is laid out
  bool laid_out_ = false;
};

}  // namespace doppler
