#pragma once

#include <cstddef>
#include <span>

#include "doppler/ids.h"
#include "doppler/kernels/device_memory.h"

namespace doppler {

// Where the tensors of one op lie on its device. Tensors of no bytes are null.
struct OpBuffers {
  std::span<const std::byte* const> inputs;  // as Graph::inputs(op)
  std::span<std::byte* const> outputs;       // as Graph::outputs(op)
};

// What the ops of one graph do. The runtime decides when and where they run; a Kernels knows nothing of that. Calls
// come from the threads of all devices at once, each op from one thread at a time.
class Kernels {
 public:
  virtual ~Kernels() = default;

  // Returns where the buffers of the ops lie; it belongs to the kernels.
  virtual const DeviceMemory& memory() const;

  // Whether the tensors of the graph lie in memory of the kernels' own, which every device sees. Then the engine neither
  // allocates nor copies: buffers are null, and a transfer is the news of a tensor.
  virtual bool hold_tensors() const { return false; }

  // Runs the op to its end on the calling thread. An exception cancels the run.
  virtual void run(OpId op, DeviceId device, const OpBuffers& buffers) = 0;

  // start() says that a run begins; cancel(), from any thread, that it is over or given up: ops that are still running
  // should end soon, since nobody waits for their results.
  virtual void start() {}
  virtual void cancel() {}

  // Whether the op is a formation, which can take its inputs one at a time and in any order. Its device folds what has
  // arrived while it has nothing else to do, so that little is left when the last input comes.
  virtual bool folds(OpId op) const;
  // Adds input number `input` to the outputs; the first one only copies.
  virtual void fold(OpId op, DeviceId device, std::size_t input, bool first, const OpBuffers& buffers);
};

}  // namespace doppler
