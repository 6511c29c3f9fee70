#pragma once

#include <memory>
#include <optional>

#include "doppler/engine/runtime/routes.h"
#include "doppler/kernels/kernels.h"

namespace doppler {

class Courier;
struct SharedRun;

// What the devices of an executor are: what their ops do and where their buffers lie, who moves tensors between them,
// and how their time is told. The runtime drives devices of any kind and never asks which. Its questions come from all
// threads of a run. Internal to doppler/engine.
class DeviceKind {
 public:
  virtual ~DeviceKind() = default;

  // Returns what ops do on these devices; its memory() is where they find their buffers.
  virtual Kernels& kernels() = 0;

  // Prepares the calling thread, which from now on is the worker of `device`, or a courier if there is none.
  virtual void settle(std::optional<DeviceId> device) const = 0;
  // Says how often an idle worker looks for work before it sleeps, in a run of so many threads.
  virtual int spins(unsigned threads) const = 0;

  // Whether one courier serves all destinations, and workers cannot help it. Otherwise each destination has its own,
  // which its worker helps, or replaces where the rules say that receivers copy.
  virtual bool one_courier() const = 0;
  virtual std::unique_ptr<Courier> make_courier(SharedRun& run, unsigned courier) = 0;
  // Whether the producer's worker hands the tensor over itself, if there is space for it, without any courier.
  virtual bool hands_over(const Routes::Transfer& transfer) const = 0;

  // Real seconds per second of the timeline.
  virtual double time_scale() const { return 1; }
  // How long a single op or transfer of this placement may take, as far as the devices know, in real seconds: a run is
  // not given up for it.
  virtual Seconds longest_step(const Routes&) const { return 0; }
};

}  // namespace doppler
