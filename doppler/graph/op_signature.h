#pragma once

#include <compare>
#include <string>

#include "doppler/graph.h"

namespace doppler {

// Everything that a graph says about the work of an op: two ops with one signature should take the same time on the
// same device.
struct OpSignature {
  std::string kind, dtype;
  Flops flops = 0;
  Bytes bytes_read = 0, bytes_written = 0;

  auto operator<=>(const OpSignature&) const = default;
};
inline OpSignature signature(const Graph& graph, OpId op) {
  return {graph.kind(op), graph.dtype(op), graph.flops(op), graph.bytes_read(op), graph.bytes_written(op)};
}

}  // namespace doppler
