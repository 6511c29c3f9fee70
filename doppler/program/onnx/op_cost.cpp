#include "doppler/program/onnx/op_cost.h"

#include <algorithm>

#include "doppler/program/onnx/cost_rules.h"

namespace doppler::program {
namespace {

using onnx::TypeProto;

Bytes bytes_read(const Operator& op, const TypedNode& typed, Bytes written) {
  Bytes total = 0;
  for (std::size_t slot = 0; slot < typed.inputs.size(); ++slot) {
    if (!typed.has(slot)) continue;
    const Bytes whole = bytes_of(*typed.inputs[slot]);
    const Reads reads = slot == 0 ? op.traits.reads : Reads::everything;
    if (reads == Reads::everything) total += whole;
    if (reads == Reads::what_it_writes) total += std::min(whole, written);
  }
  return total;
}

}  // namespace

void OpCost::operator+=(const OpCost& other) {
  flops += other.flops;
  macs += other.macs;
  read += other.read;
  written += other.written;
  known = known && other.known;
}

OpCost OpCost::times(double count) const {
  // Bytes saturate, for a Loop may claim any number of turns.
  constexpr double kMost = 1e18;
  const auto scaled = [&](Bytes bytes) {
    return static_cast<Bytes>(std::min(kMost, static_cast<double>(bytes) * count));
  };
  return {flops * count, macs * count, scaled(read), scaled(written), known};
}

OpCost cost_of(const Operator& op, const onnx::NodeProto& node, const std::vector<const TypeProto*>& inputs,
               const std::vector<TypeProto>& outputs) {
  const TypedNode typed{node, inputs, outputs};
  OpCost cost;
  for (const TypeProto& output : outputs) cost.written += bytes_of(output);
  cost.read = bytes_read(op, typed, cost.written);
  cost.known = op.cost != nullptr;
  if (!cost.known) return cost;
  const Arithmetic arithmetic = op.cost(typed);
  cost.macs = arithmetic.macs;
  cost.flops = 2 * arithmetic.macs + arithmetic.flops;
  return cost;
}

}  // namespace doppler::program
