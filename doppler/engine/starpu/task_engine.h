#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace doppler {

// A runtime for tasks that others wrote, opened as the module doppler_starpu. It sees plain numbers only, so that the
// module needs nothing of the library. Internal to doppler/engine/starpu.
class TaskEngine {
 public:
  enum class Order : std::uint8_t { as_ready, by_rank, strictly_by_rank };

  struct Task {
    std::uint32_t device = 0, rank = 0;
    std::vector<std::uint32_t> inputs = {}, outputs = {};  // tensors, each once
  };
  struct Job {
    std::vector<Task> tasks = {};             // by op
    std::vector<std::uint32_t> order = {};    // ops, producers before consumers
    std::vector<std::uint64_t> bytes = {};    // by tensor
    std::vector<std::uint32_t> readers = {};  // by tensor: how many tasks read it
  };
  struct Record {
    double ready = 0, start = 0, end = 0;  // seconds since the run began
  };
  // Does the work of an op on a device; tensors of no bytes are null. It must not throw.
  using Work = std::function<void(std::uint32_t op, std::uint32_t device, const std::byte* const* inputs,
                                  std::byte* const* outputs)>;
  // Says whether to go on waiting when so many tasks have ended; asked some times a second.
  using GoOn = std::function<bool(std::uint32_t ended)>;

  virtual ~TaskEngine() = default;
  virtual std::uint32_t devices() const = 0;
  // Runs every task once on its device. Returns false if it was told not to go on: tasks are then still running, the
  // engine cannot be used again, and what `work` uses has to stay alive.
  virtual bool run(const Job& job, const Work& work, const GoOn& go_on, std::vector<Record>& records) = 0;
};

// The entry point of the module, "doppler_make_task_engine". Returns null if the runtime does not start. Engines share
// its workers, one per core; one of them runs at a time.
using MakeTaskEngine = TaskEngine* (*)(TaskEngine::Order order);

}  // namespace doppler
